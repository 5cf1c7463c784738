"""Networks with a name keep records apart."""

import numpy as np
import pytest

from privfeat.networks.engine.network import Network, check_scores, check_separate
from privfeat.networks.models import NFResNet, ResNet, WideResNet
from tests.combinations import few
from tests.networks.small import NETWORKS

pytestmark = pytest.mark.slow

LARGE = (64, 65, 2)  # larger images are pooled after the first convolution
POOLED = {
    "resnet": (LARGE, lambda r: ResNet(LARGE, 4, depths=(1,), width=2, rngs=r)),
    "nf_resnet": (LARGE, lambda r: NFResNet(LARGE, 4, depths=(2,), width=4, rngs=r)),
}
ALL = [*NETWORKS.items(), *((f"pooled {n}", made) for n, made in POOLED.items())]


@pytest.mark.parametrize("name", few(3, dict(ALL)))
def test_networks_make_one_score_of_a_record_for_each_output(name, rngs):
    shape, make = dict(ALL)[name]
    check_scores(Network(make(rngs)), np.zeros((1, *shape), np.float32), 4)


@pytest.mark.slow
@pytest.mark.parametrize("made", dict(ALL).values(), ids=dict(ALL))
def test_networks_make_the_scores_of_a_record_from_it_alone(made, rngs):
    """Beside another record, and beside one that is not a number."""
    shape, make = made
    check_separate(Network(make(rngs)), shape)


def test_depths_of_wide_resnets_are_those_of_their_groups(rngs):
    with pytest.raises(ValueError, match=r"depth must be 6 k \+ 4, got 12"):
        WideResNet((8, 8, 3), 4, depth=12, rngs=rngs)
