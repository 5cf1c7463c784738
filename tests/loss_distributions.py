"""What dp-accounting finds once is kept until the tests end: a pytest plugin.

The loss distribution of a sampled Gaussian release takes a second, and a hundred fits
of the tests have the same sampling probability and noise multiplier. It depends on its
arguments alone, and what composes it leaves it as it is, as
``tests/test_loss_distributions.py`` shows.
"""

from functools import lru_cache

import pytest

from tests.planting import Plant

KEPT = 64  # a few megabytes each


@pytest.fixture(autouse=True, scope="session")
def kept_loss_distributions():
    """Put a memory in front of dp-accounting's distributions of Gaussian releases."""
    with Plant().context() as plant:
        found = plant.genuine("loss distribution of a Gaussian release")
        # typed: an int8 and a float that are equal need not be accounted alike
        kept = lru_cache(KEPT, typed=True)(found)
        plant("loss distribution of a Gaussian release", kept)
        yield
