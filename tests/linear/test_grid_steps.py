"""The grids of sums are known before a fit is charged."""

import numpy as np
import pytest

from privfeat import DPLeastSquaresRegressor
from privfeat.core.noise.observation import observe
from tests.linear.test_replay import FITS

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


@pytest.mark.parametrize("users", [None, "sum"])
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize("name", ["regression", *FITS])
def test_grid_steps_are_known_before_the_charge(name, adjacency, users, three_classes):
    """So a fit whose noise fits them is not refused after it."""
    X, y = three_classes
    grouped = {"groups": np.arange(31) // 2} if users else {}
    if name == "regression":
        model = DPLeastSquaresRegressor(target_bounds=(0, 2), n_iter=2)
    else:
        cls, options = FITS[name]
        model = cls(classes=range(3), clip_norm=0.7, **options)
    model.set_params(arithmetic="exact", adjacency=adjacency, random_state=0)
    if users:
        model.set_params(max_group_size=2, user_bound=users)
    shape, steps = model._problem(y, 4).shape, {}

    def seen(exact, release):
        steps.setdefault(release.name, set()).add(exact.grid_step)
        return release

    with observe(seen):
        model.fit(X, y, **grouped)
    assert steps
    for name, found in steps.items():
        assert min(found) == model._grid_step(shape, name)
