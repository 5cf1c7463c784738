"""Strategies against jax-privacy's, and fits whose noise is correlated."""

import math

import jax
import numpy as np
import pytest

from privfeat import DPSGDClassifier
from privfeat.analysis.central_limit import central_limit_mu
from privfeat.audit.noise_check import check_noise
from privfeat.audit.recorder import recording
from privfeat.audit.replay import replay
from privfeat.core.accounting.plan import Query
from privfeat.core.bounds.strategy import Banded
from privfeat.core.noise.observation import leave_out
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.networks.team import check_same_training
from privfeat.networks.training.banded import (
    banded,
    best_coefficients,
    mean_squared_error,
    with_bands,
)
from privfeat.persistence import load, save
from privfeat.persistence.model_checks import agrees_with_its_releases
from privfeat.report import html
from tests.combinations import few
from tests.networks.dying import make_classifier, make_records
from tests.networks.tiny import TINY

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
BANDED = TINY | {"noise": "banded", "bands": 3, "n_iter": 7}


@pytest.fixture(scope="module")
def fitted():
    return DPSGDClassifier(**BANDED).fit(*make_records())


def test_mean_squared_error_is_that_of_prefix_sums():
    """Of ``A C^-1``, row by row."""
    c = 0.7 * np.eye(6) + 0.5 * np.eye(6, k=-1) + 0.3 * np.eye(6, k=-2)
    sums = np.tril(np.ones((6, 6))) @ np.linalg.inv(c)
    expected = np.mean(np.sum(sums**2, axis=1))
    assert mean_squared_error((0.7, 0.5, 0.3), 6) == pytest.approx(expected, rel=1e-12)
    assert mean_squared_error((1.0,), 9) == 5.0


@pytest.mark.slow
@pytest.mark.parametrize(("bands", "n_steps"), few(1, [(2, 5), (4, 40), (8, 625)]))
def test_best_coefficients_are_those_of_jax_privacy(bands, n_steps):
    """`optimize_banded_toeplitz` of jax-privacy 2.0, in float64."""
    toeplitz = pytest.importorskip("jax_privacy.matrix_factorization.toeplitz")
    with jax.enable_x64(True):
        theirs = np.asarray(toeplitz.optimize_banded_toeplitz(n_steps, bands))
        error = float(
            np.mean(toeplitz.per_query_error(strategy_coef=theirs, n=n_steps))
        )
    ours = best_coefficients(bands, n_steps)
    np.testing.assert_allclose(ours, theirs, rtol=2e-3)
    assert mean_squared_error(ours, n_steps) <= error * (1 + 1e-6)
    assert Banded(ours).bands == bands


def test_more_bands_have_less_error_at_one_noise():
    errors = [mean_squared_error(best_coefficients(b, 500), 500) for b in (2, 4, 8)]
    assert mean_squared_error([1.0], 500) > errors[0] > errors[1] > errors[2]


def test_bands_keep_the_expected_batch():
    query = Query("gradient", 1.0, count=40, sampling_prob=0.05)
    found = with_bands(query, 4)
    assert found.sampling_prob == 0.2
    assert found.strategy.bands == 4
    assert found.participations == 10
    assert with_bands(query, 1) == query


def chosen(prob, n_steps, epsilon):
    budget = {"noise_multiplier": None, "delta": 1e-5, "adjacency": "add_remove"}
    query = Query("gradient", 1.0, count=n_steps, sampling_prob=prob)
    strategy = banded(query, None, epsilon=epsilon, **budget).strategy
    return 1 if strategy is None else strategy.bands


@pytest.mark.slow
def test_bands_pay_for_small_batches_and_large_epsilons():
    """As in Choquette-Choo et al. 2023, section 5; at epsilon 0.5 DP-SGD is best."""
    assert chosen(0.004, 2500, 8.0) >= 16
    assert chosen(0.2, 50, 0.5) == 1
    assert chosen(0.2, 50, math.inf) == 1


def test_one_band_is_independent_noise_bit_for_bit(records):
    one, none = (
        DPSGDClassifier(**TINY | how).fit(*records)
        for how in ({"noise": "banded", "bands": 1}, {})
    )
    assert one.privacy_ == none.privacy_
    for name, leaf in none.parameters_.items():
        assert np.array_equal(one.parameters_[name], leaf)


@pytest.mark.slow
def test_banded_fit_states_its_strategy_and_cost(fitted):
    statement = fitted.privacy_
    (release,) = statement.releases
    assert release.count == 7
    assert release.sampling_prob == pytest.approx(3 * 8 / 30)
    assert release.strategy == Banded(best_coefficients(3, 7))
    assert str(statement.event()).endswith("count=3)])")
    assert html._event(statement) == str(statement.event())
    assert "one release in 3; banded noise" in str(statement)
    assert agrees_with_its_releases(statement)
    assert PrivacyStatement.from_json(statement.to_json()) == statement
    sampled = release.sampling_prob**2 * 3 * math.expm1(1.0)
    assert central_limit_mu([release]) == pytest.approx(math.sqrt(sampled))


def test_a_statement_of_fewer_bands_does_not_agree(fitted):
    """One that claims the cost of three bands for two."""
    text = fitted.privacy_.to_json()
    release = fitted.privacy_.releases[0]
    last = f",\n          {release.strategy.coefficients[-1]!r}"
    assert last in text
    assert not agrees_with_its_releases(
        PrivacyStatement.from_json(text.replace(last, ""))
    )


def test_full_turns_are_exact_gaussians(records):
    """Each record once in three steps: no sampling is left to account for."""
    clf = DPSGDClassifier(**BANDED | {"expected_batch_size": 10}).fit(*records)
    assert clf.privacy_.accounting == "exact"
    assert clf.privacy_.mu == pytest.approx(math.sqrt(3))
    assert agrees_with_its_releases(clf.privacy_)


@pytest.mark.slow
def test_saved_banded_fit_comes_back(tmp_path, fitted, records):
    save(fitted, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.privacy_ == fitted.privacy_
    np.testing.assert_array_equal(
        loaded.predict(records[0]), fitted.predict(records[0])
    )


@pytest.mark.slow
def test_a_record_moves_the_sums_of_its_turns_alone(records):
    """By at most one, once in three steps, whatever was released before."""
    left = np.arange(30) == 4
    with recording() as recorder:
        DPSGDClassifier(**BANDED).fit(*records)
        calls = recorder.calls
        recorder.start(answers=calls)
        with leave_out(left):
            DPSGDClassifier(**BANDED).fit(*records)
    pairs = zip(calls, recorder.calls, strict=True)
    moved = [float(np.linalg.norm(one.exact - two.exact)) for one, two in pairs]
    turns = np.flatnonzero(moved)
    assert len(turns) > 0
    assert len({*(turns % 3)}) == 1
    assert 0.5 < max(moved) <= 1.0


@pytest.mark.slow
def test_audits_find_no_fault_in_banded_fits(records):
    assert replay(DPSGDClassifier(**BANDED), *records, record=3).ok
    assert check_noise(DPSGDClassifier(**BANDED), *records).ok


@pytest.mark.slow
def test_the_noise_check_finds_half_the_banded_noise(records, plant):
    genuine = plant.genuine("Gaussian noise")
    plant("Gaussian noise", lambda key, shape, stddev: genuine(key, shape, stddev / 2))
    assert not check_noise(DPSGDClassifier(**BANDED), *records).ok


@pytest.mark.slow
@pytest.mark.parametrize("n_draws", [2, 4, 6])
def test_interrupted_banded_fit_goes_on_bit_for_bit(
    tmp_path, records, interrupted, n_draws
):
    """Checkpoints are after 3 and 6 steps: the multiples of 3 from 2 on."""
    params = {"random_state": 5, "noise": "banded", "bands": 3}
    whole = make_classifier(tmp_path / "whole", **params).fit(*records)
    interrupted(make_classifier(tmp_path / "kept", **params), n_draws)
    clf = make_classifier(tmp_path / "kept", **params).fit(*records)
    assert clf.privacy_ == whole.privacy_
    for name, leaf in whole.parameters_.items():
        assert np.array_equal(clf.parameters_[name], leaf)


@pytest.mark.slow
def test_interrupted_banded_fit_of_users_goes_on_bit_for_bit(
    tmp_path, records, interrupted
):
    data = (*records, np.arange(30) // 3)
    params = {"random_state": 5, "noise": "banded", "bands": 2, "max_group_size": 2}
    params |= {"expected_batch_size": 4, "clipping": "adaptive"}
    whole = make_classifier(tmp_path / "whole", **params).fit(*data)
    assert whole.privacy_.unit == "user"
    interrupted(make_classifier(tmp_path / "kept", **params), 5, data)
    clf = make_classifier(tmp_path / "kept", **params).fit(*data)
    for name, leaf in whole.parameters_.items():
        assert np.array_equal(clf.parameters_[name], leaf)


@pytest.mark.slow
def test_an_interrupted_banded_fit_may_go_on_with_other_records(
    tmp_path, records, interrupted
):
    """Groups of its first steps bind nothing: all draws of the second run are new."""
    params = {"noise": "banded", "bands": 3}
    interrupted(make_classifier(tmp_path / "kept", **params), 4)
    X, y = records
    clf = make_classifier(tmp_path / "kept", **params).fit(X[::-1], y[::-1])
    assert clf.n_iter_ == 7


def test_banded_noise_in_several_processes_is_refused():
    estimator = DPSGDClassifier(noise="banded")
    with pytest.raises(ValueError, match="noise must be 'independent' in several"):
        check_same_training(None, estimator, *6 * [None])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"noise": "other"}, "noise must be one of"),
        ({"bands": 2}, "noise must be 'banded' with bands"),
        ({"noise": "banded", "bands": 4}, "bands must be at most"),
        ({"noise": "banded", "bands": 3, "n_iter": 2}, "bands must be at most"),
        ({"noise": "banded", "bands": 0}, "bands must be in"),
        ({"noise": "banded"}, "bands must be given with noise_multiplier"),
    ],
)
def test_bands_that_do_not_fit_are_refused(records, params, message):
    with pytest.raises(ValueError, match=message):
        DPSGDClassifier(**TINY | params).fit(*records)
