from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from privfeat import DPFC, DPLeastSquares, DPLeastSquaresRegressor
from privfeat.audit import check_noise, recording
from privfeat.audit.noise_check import (
    NoiseCheck,
    NoiseResult,
    noise_checks,
    repetition_p_value,
)
from privfeat.core.noise.keys import KeyStream
from privfeat.exceptions import PrivacyError
from tests.audit.faults import halve_noise, repeat_noise

BROKEN = {"class_sums": 0.5, "gram": np.nan}


@pytest.mark.statistical
@pytest.mark.parametrize(
    "clf",
    [
        DPFC(n_iter=3, classes=range(4)),
        DPLeastSquares(classes=range(4), class_gram=True, gram_noise="full"),
    ],
    ids=["fc", "ls"],
)
def test_check_noise_finds_no_fault_in_an_estimator(clf, clusters):
    """False-positive rate 1e-6."""
    X, y = clusters
    result = check_noise(clf, X[:, :20], y)
    assert result.ok
    assert all(abs(check.ratio - 1.0) < 0.3 for check in result.checks)
    assert "rms/declared" in str(result)


@pytest.mark.statistical
def test_check_noise_finds_half_the_noise(one_step, clusters, plant):
    """800 draws: power above 1 - 1e-12."""
    halve_noise(plant)
    result = check_noise(one_step(), *clusters)
    assert not result.ok
    assert result.p_repeated > 1e-6


@pytest.mark.statistical
def test_check_noise_finds_one_key_for_all_classes(one_step, clusters, plant):
    """Equal rows have a correlation of one: always found."""
    repeat_noise(plant)
    result = check_noise(one_step(), *clusters)
    assert not result.ok
    assert result.p_repeated < 1e-12


@pytest.mark.statistical
def test_check_noise_finds_one_key_for_all_steps(one_step, clusters, plant):
    """Equal releases have a correlation of one: always found."""
    key = KeyStream(1).draw_noise_key()
    plant("next key of noise", lambda self: key)
    assert check_noise(one_step(n_iter=2), *clusters).p_repeated < 1e-12


def test_check_noise_refuses_a_fit_without_noise(one_step, clusters):
    with pytest.raises(PrivacyError, match="with noise"):
        check_noise(one_step(epsilon=np.inf), *clusters)


def test_noise_that_is_no_number_does_not_pass():
    checks = [NoiseCheck(name, 9, *2 * [value]) for name, value in BROKEN.items()]
    for order in (checks, checks[::-1]):
        assert not NoiseResult(tuple(order), 1.0, 1e-6).ok
    assert NoiseResult((checks[0],), 1.0, 1e-6).ok


@pytest.mark.parametrize("rate", [0.0, 1.0, np.nan])
def test_check_noise_refuses_a_rate_that_is_none(rate, one_step, clusters):
    with pytest.raises(ValueError, match="rate must be"):
        check_noise(one_step(), *clusters, rate=rate)


@pytest.mark.statistical
def test_repetition_p_value_is_one_of_a_correlation(one_step, clusters):
    """Two blocks: 200 p-values, Kolmogorov-Smirnov, false-positive rate 1e-6."""
    rng = np.random.default_rng(0)
    values = [
        repetition_p_value(
            [
                SimpleNamespace(
                    noise=rng.normal(size=(2, 5)),
                    release=SimpleNamespace(symmetric=False),
                )
            ]
        )
        for _ in range(200)
    ]
    assert stats.kstest(values, "uniform").pvalue > 1e-6


def test_noise_checks_need_every_release_of_the_statement(one_step, clusters):
    with recording() as recorder:
        clf = one_step(random_state=None).fit(*clusters)
    assert recorder.calls
    with pytest.raises(PrivacyError, match="must be released"):
        noise_checks(clf.privacy_, [])


def test_one_release_repeats_nothing():
    clf = DPLeastSquaresRegressor(target_bounds=(0.0, 1.0), n_iter=1)
    X = np.random.default_rng(0).normal(size=(40, 30))
    with recording() as recorder:
        clf.fit(X, np.arange(40) / 40)
    assert len(recorder.calls) == 1
    assert repetition_p_value(recorder.calls) == 1.0
    assert check_noise(clf, X, np.arange(40) / 40).ok
