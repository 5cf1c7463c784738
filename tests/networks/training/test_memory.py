"""The largest physical batch that memory holds."""

import pytest

from privfeat import DPSGDClassifier
from privfeat.networks.training import memory
from tests.networks.tiny import TINY

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


@pytest.fixture
def chosen(records, plant):
    """Return the size that a fit takes with so much memory, and what sizes need."""

    def fit(n_bytes, **params):
        sizes, needs = [], {}

        def watched(trainer, *given):
            sizes.append(memory.largest_microbatch(trainer, *given))
            for size in (sizes[0], 2 * sizes[0]):
                needs[size] = memory.bytes_needed(trainer, size, *given)
            return sizes[0]

        plant("free memory of a device", lambda: n_bytes)
        plant("largest physical batch", watched)
        params = TINY | {"microbatch_size": "largest", "n_iter": 1} | params
        DPSGDClassifier(**params).fit(*records)
        return sizes[0], needs

    return fit


@pytest.mark.slow
def test_it_is_the_largest_that_fits(chosen):
    size, needs = chosen(300_000.0, expected_batch_size=None)
    assert 1 < size < 32
    assert needs[size] <= 300_000 < needs[2 * size]


@pytest.mark.slow
def test_one_record_is_taken_where_none_fits_and_few_where_all_do(chosen):
    assert chosen(1.0)[0] == 1
    assert chosen(1e15)[0] == memory.most_on_a_device()


def test_groups_are_refused():
    clf = DPSGDClassifier(**TINY | {"microbatch_size": "largest"}, max_group_size=2)
    with pytest.raises(ValueError, match="microbatch_size must be None or a number"):
        clf.fit([[0.0] * 5] * 30, [0, 1, 2] * 10, groups=[*range(30)])


def test_there_is_free_memory():
    assert memory.free_bytes() > 2**20
