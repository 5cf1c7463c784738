import math

import pytest

from privfeat.analysis.central_limit import central_limit_epsilon, central_limit_mu
from privfeat.analysis.tan import TAN
from privfeat.core.accounting.plan import ReleaseRecord


def steps(count, noise, prob):
    return ReleaseRecord("gradient", count, 1.0, noise, noise, prob)


@pytest.mark.parametrize(
    ("releases", "n_samples", "epsilon"),
    [
        (steps(2000, 35.0, 1.0), 1279, 4.40),  # Wine Quality
        (steps(3650, 1.0, 256 / 18576), 18576, 4.41),  # California Housing
    ],
)
def test_epsilons_that_bu_et_al_state(releases, n_samples, epsilon):
    """Bu et al. 2023, Appendix C: delta is one over 1.1 times the records."""
    found = central_limit_epsilon([releases], 1 / (1.1 * n_samples))
    assert found == pytest.approx(epsilon, rel=0.005)


@pytest.mark.slow
def test_the_central_limit_is_below_what_is_proved():
    """Why no statement uses it: half of what an accountant proves."""
    few = TAN(0.01, 0.5, 500)
    assert central_limit_epsilon([steps(500, 0.5, 0.01)], 1e-6) < few.epsilon(1e-6)


def test_releases_compose_and_little_noise_has_no_bound():
    one, all_records = steps(100, 1.5, 0.05), steps(4, 8.0, 1.0)
    both = central_limit_mu([one, all_records])
    assert both == pytest.approx(
        math.hypot(0.05 * 10 * math.sqrt(math.expm1(1 / 2.25)), 2 / 8)
    )
    for noise in (0.0, 1e-200, 0.03):
        assert central_limit_epsilon([steps(1, noise, 0.5)], 1e-5) == math.inf
    assert central_limit_epsilon([steps(1, 1e9, 1.0)], 1e-5) == 0.0
