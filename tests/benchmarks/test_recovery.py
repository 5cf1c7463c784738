"""What is recovered of the distance to accuracy without privacy."""

import pytest
import recovery


@pytest.mark.parametrize(
    ("with_it", "expected"), [(75.0, 50.0), (50.0, 0.0), (120.0, 100.0), (0.0, -100.0)]
)
def test_recovered_is_a_part_of_the_distance(with_it, expected):
    assert recovery.recovered(50.0, with_it, 100.0) == expected


def test_tuned_methods_are_read_from_their_tables():
    name, without, with_it, best = next(recovery.tuned())
    assert name == "cifar10_128, beside tuned"
    assert (without["1"], with_it["1"], best) == (73.94, 75.20, 77.53)
