import math

import pytest

from privfeat.core.bounds.grid import grid_step


@pytest.mark.parametrize("bound", [1e-6, 0.5, 0.7, 1.0, 1.0 + 2**-52, 3.0, 1e6])
def test_grid_step_is_the_smallest_power_of_two_that_suffices(bound):
    step = grid_step(bound)
    assert math.frexp(step)[0] == 0.5
    assert bound <= 2**20 * step
    assert bound > 2**20 * step / 2
