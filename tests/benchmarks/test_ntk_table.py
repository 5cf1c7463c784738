"""Table 1 of Bu, Wang & Long 2023, found in three linear models."""

import numpy as np
import pytest
from figures.ntk_kernel import clipped_kernel
from figures.ntk_table import (
    COLUMNS,
    LARGE,
    TABLE_1,
    flow_properties,
    opposed,
    outlier,
    runaway,
    table_1,
)


def test_table_1_is_found_in_three_linear_models():
    """Each guarantee that Theorem 1 denies has a counterexample, but for one.

    A linear model with flat clipping follows a convex loss, and so it converges.
    """
    found = table_1()
    converges = COLUMNS.index("converges")
    assert not TABLE_1["small R, flat"][converges]
    assert found["small R, flat"][converges]
    for style, guaranteed in TABLE_1.items():
        for i, (here, there) in enumerate(zip(found[style], guaranteed, strict=True)):
            assert here == there or (style, i) == ("small R, flat", converges)


@pytest.mark.parametrize("make", [outlier, opposed, runaway])
def test_problems_meet_the_conditions_of_the_theorems(make):
    problem = make()
    whole = clipped_kernel(*problem.batch, clip_norm=LARGE)
    assert np.linalg.eigvalsh(whole.kernel).min() > 0.1
    assert np.all(whole.factors["all"] == 1)
    small = clipped_kernel(*problem.batch, **problem.styles()["small R, flat"])
    assert small.factors["all"].min() < 1


def test_opposed_gradients_cancel_in_each_layer():
    problem = opposed()
    decay = problem.follow(problem.styles()["small R, layerwise"])
    assert decay.losses == pytest.approx(1, abs=1e-12)


def test_losses_show_their_flow():
    steps = np.arange(100)
    found = flow_properties(0.9**steps)
    assert found.converges
    assert found.monotone
    assert found.to_zero
    rising = flow_properties(1 + steps)
    assert not rising.converges
    assert not rising.monotone
    assert not rising.to_zero
    assert not flow_properties(np.append(0.9**steps, 0.5)).monotone
