"""What ``fit`` accepts, refuses, spends and draws."""

import math

import jax
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant

from privfeat import DPFC, DPAdamLinear, DPLeastSquares, DPNewton
from privfeat.core.accounting.conversions import (
    gaussian_epsilon,
    gaussian_mu,
    zcdp_epsilon,
)
from privfeat.core.noise.release import Release
from privfeat.exceptions import PrivacyWarning, UnsupportedEventError
from privfeat.solvers.spectrum import step_noise_ridge
from tests.linear.conftest import FITTED

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
# the fit, the number of its releases but for the mean, and the weight of its gram
PLANS = {
    "ls": (DPLeastSquares, {}, 2, 0.2),
    "ls-class": (DPLeastSquares, {"class_gram": True}, 3, 1.0),
    "newton": (DPNewton, {"n_iter": 4}, 8, 0.2),
    "newton-sigmoid": (DPNewton, {"n_iter": 2, "loss": "sigmoid"}, 4, None),
    "fc": (DPFC, {"n_iter": 60}, 61, 1.0),
    "fc-short": (DPFC, {"n_iter": 3}, 4, 0.2),
    "fc-default": (DPFC, {}, 21, 0.4),
    "adam": (DPAdamLinear, {"n_iter": 5}, 5, None),
}


def test_fit_draws_fresh_noise_every_time(estimator, three_classes):
    clf = estimator()
    coefs = []
    for _ in range(3):
        np.random.seed(0)  # noqa: NPY002
        coefs.append(clf.fit(*three_classes).coef_)
    assert np.all(coefs[0] != coefs[1])
    assert np.all(coefs[0] != coefs[2])


def test_fit_with_a_seed_is_reproducible(estimator, three_classes):
    clf = estimator(random_state=2**40)
    one, two = (clf.fit(*three_classes).coef_ for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert np.any(one != estimator(random_state=0).fit(*three_classes).coef_)


def test_fit_accepts_a_random_state_object(estimator, three_classes):
    one, two = (
        estimator(random_state=np.random.RandomState(5)).fit(*three_classes)
        for _ in range(2)
    )
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert one.privacy_.seeded


@pytest.mark.parametrize(("state", "seeded"), [(None, False), (0, True)])
def test_fit_marks_a_seeded_statement(estimator, three_classes, state, seeded):
    clf = estimator(random_state=state).fit(*three_classes)
    assert clf.privacy_.seeded is seeded
    assert clf.privacy_.private is not seeded


def test_fit_without_privacy_draws_nothing(estimator, three_classes):
    one, two = (estimator(epsilon=math.inf).fit(*three_classes) for _ in range(2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert one.privacy_.epsilon == math.inf
    assert not one.privacy_.private


def composed_mu(statement):
    return math.sqrt(
        sum(
            r.count * (r.l2_sensitivity / r.noise_stddev) ** 2
            for r in statement.releases
        )
    )


@pytest.fixture(params=PLANS)
def planned(request):
    return PLANS[request.param]


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize("accounting", ["exact", "zcdp"])
def test_fit_by_epsilon_spends_it(planned, adjacency, accounting, three_classes):
    cls, options, *_ = planned
    statement = (
        cls(epsilon=0.7, accounting=accounting, adjacency=adjacency, **options)
        .fit(*three_classes)
        .privacy_
    )
    mu = composed_mu(statement)
    if accounting == "exact":
        assert mu <= gaussian_mu(0.7, 1e-5)
        assert gaussian_epsilon(mu, 1e-5) == pytest.approx(0.7, rel=1e-6)
    else:
        assert zcdp_epsilon(mu**2 / 2, 1e-5) == pytest.approx(0.7, rel=1e-6)
    assert statement.epsilon == 0.7
    assert statement.adjacency == adjacency


def test_fit_by_rho_spends_it(planned, three_classes):
    cls, options, *_ = planned
    statement = cls(rho=0.3, **options).fit(*three_classes).privacy_
    assert composed_mu(statement) ** 2 / 2 == pytest.approx(0.3, rel=1e-9)
    assert statement.epsilon >= gaussian_epsilon(math.sqrt(0.6), 1e-5) * (1 - 1e-9)


@pytest.mark.parametrize("center", [True, False])
def test_fit_by_noise_multiplier_uses_it_for_every_release(
    planned, center, three_classes
):
    """Divided by the root of the weight; the mean gets a tenth of rho."""
    cls, options, count, gram = planned
    clf = cls(noise_multiplier=4.0, center=center, **options)
    statement = clf.fit(*three_classes).privacy_
    total = count if gram is None else count - 1 + gram
    weights = {"feature_mean": total / 9.0, "gram": gram}
    assert sum(record.count for record in statement.releases) == count + center
    for record in statement.releases:
        expected = 4.0 / math.sqrt(weights.get(record.name, 1.0))
        assert record.noise_multiplier == pytest.approx(expected, rel=1e-9)
    total *= 10.0 / 9.0 if center else 1.0
    expected = gaussian_epsilon(math.sqrt(total) / 4.0, 1e-5)
    assert statement.epsilon == pytest.approx(expected, rel=1e-6)


def test_fit_plan_agrees_with_dp_accounting(planned, three_classes, plant):
    """The event of the plan that the mechanism holds, in the PLD accountant."""
    plans = []

    def spy(plan, *rest):
        plans.append(plan)
        return genuine(plan, *rest)

    genuine = plant.genuine("class of mechanisms")
    plant("class of mechanisms", spy)
    cls, options, *_ = planned
    cls(epsilon=1.0, **options).fit(*three_classes)
    (plan,) = plans
    epsilon = PLDAccountant().compose(plan.event()).get_epsilon(1e-5)
    assert epsilon == pytest.approx(1.0, rel=2e-3)


@pytest.mark.parametrize("center", [True, False])
def test_fit_splits_the_budget_as_asked(center, three_classes):
    split = {"gram": 0.2, "gradient": 0.8}
    if center:
        split = {"gram": 0.2, "gradient": 0.5, "feature_mean": 0.3}
    clf = DPFC(rho=1.0, n_iter=8, budget_split=split, center=center)
    clf.fit(*three_classes)
    spent = {
        r.name: r.count / (2 * r.noise_multiplier**2) for r in clf.privacy_.releases
    }
    assert spent == pytest.approx(split)


def test_fit_defaults_to_epsilon_one(estimator, three_classes):
    assert estimator().fit(*three_classes).privacy_.epsilon == 1.0


@pytest.mark.parametrize("optimizer", ["adam", "rmsprop"])
@pytest.mark.parametrize(("n_iter", "clip_norm"), [(1, 1.0), (16, 1.0), (4, 0.5)])
def test_adam_has_a_rate_by_which_all_noise_moves_a_score_by_little(
    optimizer, n_iter, clip_norm, three_classes
):
    """The default is ``0.85 / (sqrt(n_iter) clip_norm)``; bit for bit."""
    options = {
        "optimizer": optimizer,
        "n_iter": n_iter,
        "clip_norm": clip_norm,
        "random_state": 0,
    }
    rate = 0.85 / (math.sqrt(n_iter) * clip_norm)
    found = DPAdamLinear(**options).fit(*three_classes)
    expected = DPAdamLinear(learning_rate=rate, **options).fit(*three_classes)
    np.testing.assert_array_equal(found.coef_, expected.coef_)


def test_adam_returns_the_last_iterate_by_default(three_classes):
    one, two = (
        DPAdamLinear(n_iter=3, random_state=0, **options).fit(*three_classes)
        for options in ({}, {"iterate": "last"})
    )
    np.testing.assert_array_equal(one.coef_, two.coef_)


@pytest.mark.parametrize("n_iter", [1, 9])
def test_feature_covariance_has_a_ridge_for_the_noise_of_its_steps(
    n_iter, three_classes
):
    """That of `step_noise_ridge` for its own steps, rate, rows and gradient noise."""
    options = {"n_iter": n_iter, "clip_norm": 0.5, "random_state": 0}
    found = DPFC(**options).fit(*three_classes)
    ridge = step_noise_ridge(
        Release("gram", np.zeros((4, 4)), 0.0, True),
        step_noise_stddev=found.privacy_.releases[-1].noise_stddev,
        n_steps=n_iter,
        learning_rate=4.8,
        row_norm=0.5,
    )
    expected = DPFC(ridge=ridge, **options).fit(*three_classes)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-5, atol=1e-9)


def test_fit_with_sampling_spends_less(three_classes):
    options = {"n_iter": 3, "noise_multiplier": 2.0, "accounting": "pld"}
    sampled = DPAdamLinear(sampling_prob=0.1, **options).fit(*three_classes).privacy_
    whole = DPAdamLinear(**options).fit(*three_classes).privacy_
    assert sampled.epsilon < whole.epsilon / 2
    assert [r.sampling_prob for r in sampled.releases] == [1.0, 0.1]
    assert sampled.mu is sampled.rho is None


@pytest.mark.parametrize(
    ("adjacency", "known"), [("add_remove", False), ("replace_one", True)]
)
def test_fit_states_what_is_public(estimator, three_classes, adjacency, known):
    clf = estimator(adjacency=adjacency, classes=range(3)).fit(*three_classes)
    assert clf.privacy_.public[:2] == (
        "the number of features (4)",
        "the set of 3 classes (given)",
    )
    assert ("the number of records" in clf.privacy_.public) is known


def test_fit_raises_when_the_coefficients_overflow(three_classes):
    clf = DPAdamLinear(
        noise_multiplier=100.0, optimizer="sgd", learning_rate=1e308, n_iter=1
    )
    with pytest.raises(FloatingPointError, match="coefficients must be finite"):
        clf.fit(*three_classes)
    # the noise was drawn: no coefficients, but a statement of what was spent
    assert FITTED & set(vars(clf)) == {"privacy_", "center_"}


@pytest.mark.parametrize("budget", [{"rho": 0.5}, {"noise_multiplier": 1.0}])
def test_fit_refuses_noise_without_a_finite_epsilon(budget, three_classes, plant):
    """Else such a plan would count as not private and switch clipping off."""
    plant("epsilon by PLD", lambda event, delta: math.inf)
    clf = DPLeastSquares(accounting="pld", row_scaling="clip", **budget)
    with pytest.raises(UnsupportedEventError, match="finite epsilon"):
        clf.fit(*three_classes)
    assert not FITTED & set(vars(clf))


def test_fit_refuses_a_delta_below_the_tails_of_the_noise(estimator, three_classes):
    with pytest.raises(ValueError, match="delta must be in"):
        estimator(delta=1e-12).fit(*three_classes)


def test_fit_reaches_the_accuracy_of_the_data_with_little_noise(
    estimator, three_classes
):
    clf = estimator(noise_multiplier=1e-3, row_scaling="unit").fit(*three_classes)
    assert clf.score(*three_classes) > 0.85


def test_fit_shows_progress_when_asked(estimator, three_classes, capsys):
    estimator(verbose=1).fit(*three_classes)
    (line,) = capsys.readouterr().err.splitlines()  # of less than a minute
    assert line.startswith(f"{estimator.__name__}: epsilon = ")


@pytest.mark.parametrize("epsilon", [math.inf, 1e3])
def test_fit_warns_of_an_epsilon_that_promises_nothing(
    estimator, three_classes, epsilon
):
    with pytest.warns(PrivacyWarning, match="epsilon should be at most"):
        estimator(epsilon=epsilon).fit(*three_classes)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("jax_numpy_dtype_promotion", "strict"),
        ("jax_numpy_rank_promotion", "raise"),
        pytest.param("jax_disable_jit", True, marks=pytest.mark.slow),
    ],
)
def test_fit_computes_the_same_whatever_jax_is_set_to(three_classes, setting, value):
    """Strict types and code that is not compiled ended fits that were charged."""
    clf = DPFC(classes=range(3), n_iter=1, random_state=4)
    usual = clf.fit(*three_classes).coef_
    before = jax.config.values[setting]
    jax.config.update(setting, value)
    try:
        np.testing.assert_allclose(clf.fit(*three_classes).coef_, usual, rtol=1e-9)
    finally:
        jax.config.update(setting, before)
