"""Physical batches, and gradients as vectors."""

import jax.numpy as jnp
import numpy as np
import pytest

from privfeat.networks.training.loop import flatten, physical_batches, unflatten


@pytest.mark.parametrize("n", [0, 1, 4, 9])
def test_physical_batches_hold_every_record_once(n):
    drawn = np.arange(100, 100 + n)
    batches = list(physical_batches(drawn, 4))
    assert all(len(numbers) == len(valid) == 4 for numbers, valid in batches)
    held = [unit for numbers, valid in batches for unit in numbers[valid]]
    assert held == drawn.tolist()


def test_flatten_round_trip():
    arrays = {"a": jnp.arange(6.0).reshape(2, 3), "b": jnp.array([7.0])}
    back = unflatten(flatten(arrays, ("b", "a")), arrays, ("b", "a"))
    assert all(np.array_equal(back[name], arrays[name]) for name in arrays)
