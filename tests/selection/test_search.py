"""DPRandomizedSearch: what it spends, selects, keeps and forgets."""

import collections
import dataclasses
import math
import pickle
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import privfeat
from privfeat import (
    DPFC,
    DPAdamLinear,
    DPLeastSquares,
    DPNewton,
    DPRandomizedSearch,
    PrivacyError,
    PrivacyLedger,
    PrivacyWarning,
)
from privfeat.core.accounting.conversions import gaussian_epsilon
from privfeat.core.accounting.selection import selection_epsilon
from privfeat.core.noise.gaussian_mechanism import GaussianMechanism
from privfeat.core.noise.keys import KeyStream
from privfeat.core.noise.observation import observe
from privfeat.core.private_fit import PrivateFit
from privfeat.core.statement.selection import Selection
from privfeat.core.sums.records import CHUNK_ROWS
from privfeat.exceptions import UnsupportedEventError
from privfeat.selection import runs as runs_of
from privfeat.selection.inputs import statement_of
from privfeat.selection.runs import Runner

pytestmark = [
    pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning"),
]
NAN, INF = math.nan, math.inf


@pytest.mark.parametrize("cls", [DPFC, DPLeastSquares, DPNewton, DPAdamLinear])
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_search_spends_its_budget_in_every_run(cls, adjacency, make, data, runs):
    options = {} if cls is DPLeastSquares else {"n_iter": 2}
    estimator = cls(classes=range(3), adjacency=adjacency, **options)
    search = make(estimator, {"clip_norm": [0.5, 1.0]}, epsilon=3.0).fit(*data)
    selection = search.privacy_.selection
    spent = selection_epsilon(selection.run_mu, 1e-5, selection.runs)
    assert search.privacy_.epsilon == 3.0
    assert spent == pytest.approx(3.0, rel=1e-6)
    assert spent <= 3.0
    assert selection.runs.mean == pytest.approx(3.0)
    for run in runs[:-1]:
        # the selected run's statement was replaced by the one of the search
        statement = run.estimator.privacy_
        if statement is not search.privacy_:
            assert statement.mu == pytest.approx(selection.run_mu)
    assert gaussian_epsilon(selection.run_mu, 1e-5) < 3.0


def test_search_costs_the_same_whatever_the_number_of_releases(
    make, data, runs, five_runs
):
    make(candidates={"n_iter": [1, 7]}).fit(*data)
    multipliers = {
        run.estimator.n_iter: record.noise_multiplier
        for run in runs
        for record in run.estimator.privacy_.releases
        if record.name == "gram"
    }
    assert len(multipliers) == 1 or multipliers[7] / multipliers[1] == pytest.approx(2)


def test_search_states_its_cost_wherever_it_is_looked_up(make, data, tmp_path):
    search = make().fit(*data)
    assert search.best_estimator_.privacy_ is search.privacy_
    names = [record.name for record in search.privacy_.releases]
    assert names == ["feature_mean", "gram", "gradient", "score"]
    privfeat.save(search.best_estimator_, tmp_path / "model")
    assert privfeat.load(tmp_path / "model").privacy_ == search.privacy_
    assert privfeat.compose([search.privacy_]).epsilon >= 2.0 * (1 - 1e-9)


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_score_has_the_noise_and_sensitivity_of_a_run(
    adjacency, make, data, monkeypatch
):
    sums, plans, genuine = [], [], PrivateFit.mechanism

    def mechanism(self, plan):
        plans.append(plan)
        return genuine(self, plan)

    def note(exact, release):
        if release.name == "score":
            sums.append((exact.value, plans[-1]))
        return release

    monkeypatch.setattr(PrivateFit, "mechanism", mechanism)
    estimator = DPFC(n_iter=2, classes=range(3), adjacency=adjacency)
    with observe(note):
        search = make(estimator, validation_fraction=0.5).fit(*data)
    (exact, plan), record = sums[0], search.privacy_.releases[-1]
    assert exact == round(float(exact))
    assert plan.mu <= search.privacy_.selection.run_mu * (1 + 1e-9)
    assert record.l2_sensitivity == (1.0 if adjacency == "add_remove" else 2.0)
    assert record.noise_stddev == plan["score"].noise_stddev > 0.0
    assert record.noise_multiplier == pytest.approx(1 / plan.mu)


def test_search_in_exact_arithmetic_releases_whole_numbers(make, data, monkeypatch):
    def fail(*_):
        raise AssertionError

    for name in ("gaussian", "symmetric_gaussian"):
        monkeypatch.setattr(f"privfeat.core.noise.draws.{name}", fail)
    search = make(DPFC(n_iter=2, classes=range(3), arithmetic="exact")).fit(*data)
    assert search.privacy_.arithmetic == "exact"
    assert search.best_score_ * 2**20 == round(search.best_score_ * 2**20)
    assert search.best_score_ != round(search.best_score_)


def selecting(seed=1, arithmetic="float64"):
    """A search that is charged: its scores may draw noise."""
    selection = Selection(run_mu=0.2, eta=0.0, gamma=0.1, scored_on="holdout")
    statement = statement_of(
        selection,
        epsilon=1.0,
        delta=1e-5,
        adjacency="add_remove",
        n_features=2,
        classes_given=True,
        seeded=False,
        arithmetic=arithmetic,
    )
    return PrivateFit(SimpleNamespace(), statement, KeyStream(seed), ()).charging()


@pytest.mark.statistical
@pytest.mark.parametrize("arithmetic", ["float64", "exact"])
def test_score_is_noisy_by_the_stated_stddev(arithmetic, make, data):
    """Chi-square of 400 scores of one fit; false-positive rate 1e-6.

    Half the noise fails with power > 0.999.
    """
    X, y = data
    fitted = DPFC(epsilon=INF, n_iter=2, classes=range(3)).fit(X, y)
    search = make(random_state=0)
    plan = Runner(search.estimator, {}, range(3), 0.5, KeyStream(0)).score_plan()
    exact = 2 * np.sum(fitted.predict(X) == y) - len(y)
    with selecting(seed=20261121, arithmetic=arithmetic) as fit:
        score = runs_of.HoldoutScore(X, y, plan, fit)
        draws = np.array([score(fitted) for _ in range(400)]) - exact
    statistic = np.sum((draws / plan["score"].noise_stddev) ** 2)
    low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], df=400)
    assert low < statistic < high
    assert plan["score"].noise_stddev == pytest.approx(2.0)


@pytest.mark.parametrize("ours", [True, False])
@pytest.mark.parametrize("n_records", [3, 4, 1024, 1025])
def test_score_of_a_record_does_not_depend_on_how_many_there_are(
    n_records, ours, monkeypatch
):
    """Products of matrices round differently for different numbers of rows."""
    monkeypatch.setattr(runs_of, "is_ours", lambda fitted: ours)
    n_rows, shapes = CHUNK_ROWS if ours else 1, []

    class Rounding:
        def predict(self, X):
            shapes.append(X.shape)
            return np.full(len(X), len(X) % 5)

    X, y = np.ones((n_records, 2)), np.full(n_records, n_rows % 5)
    plan = Runner(DPFC(), {}, range(5), 0.5, KeyStream(1)).score_plan()
    seen = []
    with (
        observe(lambda exact, release: seen.append(float(exact.value)) or release),
        selecting() as fit,
    ):
        for n in (n_records - 1, n_records):
            runs_of.HoldoutScore(X[:n], y[:n], plan, fit)(Rounding())
    assert set(shapes) == {(n_rows, 2)}
    assert seen == [n_records - 1, n_records]


def test_score_moves_by_one_record_whatever_another_makes_of_neighbours():
    """A classifier that compares the rows of a call: the first moved all before."""

    class ByRank:
        def predict(self, X):
            return (X[:, 0] >= np.max(X[:, 0])).astype(int)

    plan = Runner(DPFC(), {}, range(2), 0.5, KeyStream(1)).score_plan()
    X, y, seen = np.ones((200, 2)), np.ones(200, int), []
    with (
        observe(lambda exact, release: seen.append(float(exact.value)) or release),
        selecting() as fit,
    ):
        for first in (1.0, 9.0):
            X[0] = first
            runs_of.HoldoutScore(X, y, plan, fit)(ByRank())
    assert seen == [200, 200]


def test_score_shows_no_words_of_the_estimator():
    class Talks:
        def predict(self, X):
            raise RuntimeError(f"secret {X!r}")

    plan = Runner(DPFC(), {}, range(2), 0.5, KeyStream(1)).score_plan()
    with (
        pytest.raises(ValueError, match="kept back") as caught,
        selecting() as fit,
    ):
        runs_of.HoldoutScore(np.ones((3, 2)), np.ones(3, int), plan, fit)(Talks())
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_search_trains_and_scores_on_disjoint_records(make, data, monkeypatch):
    sizes = []
    genuine = Runner.best

    def best(self, X, y, score, runs):
        sizes.append((len(X), len(score._X)))
        rows = np.vstack([X, score._X])
        assert len(np.unique(rows, axis=0)) == len(rows)
        return genuine(self, X, y, score, runs)

    monkeypatch.setattr(Runner, "best", best)
    make(validation_fraction=0.3).fit(*data)
    make(validation_fraction=0.3).fit(*data)
    assert all(trained + held_out == 60 for trained, held_out in sizes)
    assert 0 < sizes[0][1] < 40


def test_search_with_public_validation_data_trains_on_all_records(
    make, data, monkeypatch
):
    sizes, genuine = [], Runner._run

    def run(self, X, y, score):
        sizes.append(len(X))
        return genuine(self, X, y, score)

    monkeypatch.setattr(Runner, "_run", run)
    X, y = data
    search = make().fit(X, y, X[:20], y[:20])
    assert set(sizes) == {60}
    assert search.best_score_ == search.best_estimator_.score(X[:20], y[:20])
    names = [record.name for record in search.privacy_.releases]
    assert names == ["feature_mean", "gram", "gradient"]
    assert search.privacy_.selection.scored_on == "public"
    assert "validation data" in str(search.privacy_)


def test_search_releases_the_run_of_the_best_score(make, data, runs, five_runs):
    search = make(epsilon=8.0).fit(*data)
    assert len(runs) == 5
    best = max(runs, key=lambda run: run.score)
    assert search.best_estimator_ is best.estimator
    assert search.best_score_ == best.score
    assert search.best_params_ == best.params


def test_search_keeps_the_first_of_equal_scores(make, data, runs, five_runs):
    X, y = data
    search = make(scoring=lambda *_: 0.5).fit(X, y, X, y)
    assert search.best_estimator_ is runs[0].estimator


def test_search_takes_a_score_of_nan_for_the_worst(make, data, runs, five_runs):
    X, y = data
    # the first is of made-up records, before the search is charged
    values = iter([-1.0, NAN, NAN, -7.0, NAN, -8.0])
    search = make(scoring=lambda *_: next(values)).fit(X, y, X, y)
    assert search.best_score_ == -7.0
    assert search.best_estimator_ is runs[2].estimator
    assert make(scoring=lambda *_: NAN).fit(X, y, X, y).best_score_ == -INF


def test_search_without_privacy_finds_the_better_candidate(make, data, five_runs):
    X, y = data
    search = make(
        DPFC(n_iter=1, classes=range(3)),
        [{"learning_rate": [1e-9], "intercept_init": [0.0]}, {"ridge": [0.1]}],
        epsilon=INF,
    )
    while True:
        search.fit(X, y, X, y)
        if "ridge" in search.best_params_:
            break  # all five runs draw the bad candidate one time in 32
    assert search.score(X, y) > 0.8
    assert not search.privacy_.private
    assert str(search.privacy_).startswith("No privacy")


def test_search_keeps_nothing_but_what_it_releases(make, data, five_runs):
    search = make().fit(*data)
    fitted = {name for name in vars(search) if name.endswith("_")}
    assert fitted == {
        "best_estimator_",
        "best_params_",
        "best_score_",
        "classes_",
        "n_features_in_",
        "privacy_",
    }
    assert set(vars(search)) - fitted == set(search.get_params(deep=False))
    assert (
        vars(search.best_estimator_).keys()
        == vars(DPFC(n_iter=2, classes=range(3)).fit(*data)).keys()
    )


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize("in_holdout", [True, False])
def test_search_on_neighbours_differs_in_released_values_alone(
    adjacency, in_holdout, make, data, monkeypatch
):
    """One record more, or another: with its release as answers, all else is equal."""
    X, y = data
    masks = np.arange(61) % 3 == 0
    masks[60] = in_holdout
    monkeypatch.setattr(
        "privfeat.selection.search.bernoulli", lambda key, n, p: masks[:n]
    )
    calls, answers, genuine = [], [], GaussianMechanism.release

    def release(self, name, exact, **options):
        drawn = genuine(self, name, exact, **options)
        calls.append((name, np.array(exact.value)))
        if len(answers) < len(calls):
            answers.append(drawn)
        return answers[len(calls) - 1]

    monkeypatch.setattr(GaussianMechanism, "release", release)
    if adjacency == "add_remove":
        sets = (X, y), (np.vstack([X, [[9.0, -9.0, 9.0, 0]]]), np.append(y, 1))
    else:
        sets = tuple(
            (np.vstack([X, [row]]), np.append(y, label))
            for row, label in [([9.0, -9.0, 9.0, 0.0], 1), ([0.0, 9.0, 0.0, 9.0], 2)]
        )
    states, exacts = [], []
    for one in sets:
        calls.clear()
        estimator = DPFC(n_iter=2, classes=range(3), adjacency=adjacency)
        search = make(estimator, random_state=3).fit(*one)
        states.append((search, vars(search.best_estimator_)))
        exacts.append(list(calls))
    (first, one), (second, two) = states
    assert first.best_params_ == second.best_params_
    assert first.best_score_ == second.best_score_
    assert first.privacy_ == second.privacy_
    assert one.keys() == two.keys()
    np.testing.assert_array_equal(one["coef_"], two["coef_"])
    limits = {r.name: r.l2_sensitivity for r in first.privacy_.releases}
    moved = collections.Counter()
    for (name, left), (other, right) in zip(*exacts, strict=True):
        assert name == other
        move = float(np.linalg.norm(left - right))
        assert move <= limits[name]
        moved[name] += move > 0.0
    # a record is in the score or in the sums, never in both
    assert not (moved["score"] and (moved["gram"] or moved["gradient"]))
    assert bool(moved["gram"]) is not in_holdout


def test_search_without_a_seed_is_fresh_whatever_numpy_says(make, data):
    coefs = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        search = make().fit(*data)
        coefs.append(search.best_estimator_.coef_)
    assert not np.array_equal(*coefs)
    assert not search.privacy_.seeded


def test_search_leaves_the_state_of_numpy_alone(make, data):
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    make().fit(*data)
    after = np.random.get_state()[1]  # noqa: NPY002
    np.testing.assert_array_equal(after, before)


def test_search_with_a_seed_is_reproducible_and_says_so(make, data):
    searches = [make(random_state=seed).fit(*data) for seed in (1, 1, 2)]
    coefs = [search.best_estimator_.coef_ for search in searches]
    np.testing.assert_array_equal(coefs[0], coefs[1])
    assert not np.array_equal(coefs[0], coefs[2])
    assert searches[0].privacy_.seeded
    assert "SEEDED" in str(searches[0].privacy_)


def test_search_draws_noise_of_its_own_for_every_run(make, data, runs, five_runs):
    """Also if the estimator has a seed, which all runs would share."""
    estimator = DPFC(n_iter=2, classes=range(3), random_state=0)
    search = make(estimator, {"learning_rate": [1.0]}).fit(*data)
    coefs = {run.estimator.coef_.tobytes() for run in runs}
    assert len(coefs) == 5
    assert not search.privacy_.seeded
    make(estimator, {"learning_rate": [1.0]}, random_state=1).fit(*data)
    assert len({run.estimator.random_state for run in runs[5:]}) == 5


@pytest.mark.statistical
def test_search_draws_candidates_uniformly(make, data, monkeypatch):
    """Chi-square over 600 draws of 6 candidates; false-positive rate 1e-6."""
    monkeypatch.setattr(DPFC, "fit", lambda self, X, y: self)
    monkeypatch.setattr(Runner, "_check", lambda *_: None)
    grid = [{"ridge": [1.0, 2.0], "learning_rate": [1.0, 2.0]}, {"ridge": [5.0, 6.0]}]
    keys = runs_of.KeyStream(20261121)
    runner = Runner(make().estimator, grid, range(3), 0.5, keys)
    drawn = collections.Counter(
        str(runner._run(*data, lambda _: 0.0).params) for _ in range(600)
    )
    assert len(drawn) == 6
    assert stats.chisquare(list(drawn.values())).pvalue > 1e-6


def test_search_takes_distributions_of_scipy(make, data):
    search = make(candidates={"learning_rate": stats.loguniform(0.1, 4.0)}).fit(*data)
    assert 0.1 <= search.best_params_["learning_rate"] <= 4.0


def test_search_fails_when_a_run_fails(make, data, five_runs, monkeypatch):
    """The budget is spent then, and no earlier result stays."""
    search, genuine, fits = make(epsilon=1.5).fit(*data), DPFC.fit, []

    def fit(self, X, y):
        fits.append(genuine(self, X, y))
        if len(fits) == 3:
            raise FloatingPointError("overflow")
        return self

    monkeypatch.setattr(DPFC, "fit", fit)
    search.set_params(epsilon=2.5)
    with pytest.raises(FloatingPointError, match="overflow"):
        search.fit(*data)
    assert search.privacy_.epsilon == 2.5
    assert not [name for name in vars(search) if name.startswith("best_")]


def test_search_does_not_skip_a_candidate_that_cannot_be_fitted(make, data):
    with pytest.raises(ValueError, match="learning_rate"):
        make(candidates={"learning_rate": [-1.0]}).fit(*data)


REFUSED = [
    ({"candidates": {"learning_rate": [0.1, -1.0]}}, {}, ValueError, "learning_rate"),
    ({"candidates": {"n_iter": [2, 2.5]}}, {}, TypeError, "n_iter"),
    ({"candidates": {"ridge": stats.uniform(-1, 2)}}, {}, ValueError, "ridge"),
    ({"candidates": {"budget_split": [{"a": 1.0}]}}, {}, ValueError, "budget_split"),
    ({"estimator": DPFC(classes=range(2))}, {}, ValueError, "another label"),
    ({}, {"X_val": np.zeros((9, 2))}, ValueError, "features"),
    ({"scoring": "roc_auc"}, {"X_val": np.zeros((9, 4))}, ValueError, "multi_class"),
    ({"scoring": lambda *_: "good"}, {"X_val": np.zeros((9, 4))}, TypeError, "number"),
    (
        {
            "estimator": DPAdamLinear(
                sampling_prob=0.5, accounting="pld", classes=range(3)
            ),
            "candidates": {"n_iter": [2]},
        },
        {},
        UnsupportedEventError,
        "sampled",
    ),
]


@pytest.mark.parametrize(("search", "validation", "error", "message"), REFUSED)
def test_search_is_not_charged_for_what_no_run_could_fit_or_score(
    search, validation, error, message, make, data, tmp_path
):
    ledger = PrivacyLedger(tmp_path / "ledger", dataset="d", epsilon=9.0, delta=1e-5)
    validation = validation and {**validation, "y_val": np.arange(9) % 3}
    with pytest.raises(error, match=message):
        make(**search).set_params(ledger=ledger, random_state=None).fit(
            *data, **validation
        )
    assert not ledger.history


def test_search_warns_once_and_not_for_every_run(make, data, five_runs):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make(DPFC(n_iter=2), random_state=0, delta=0.01, epsilon=30.0).fit(*data)
    assert [str(w.message).split()[0] for w in caught] == [
        "epsilon",
        "classes=None",
        "random_state",
        "delta",
    ]
    assert {w.category for w in caught} == {PrivacyWarning}
    assert {w.filename for w in caught} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make().fit(*data)


def test_search_knows_all_classes_though_a_run_may_not_see_them(make, data):
    X, y = data
    y = np.where(np.arange(60) == 7, 9, y % 2)
    for _ in range(5):
        search = make(DPFC(n_iter=2), validation_fraction=0.5).fit(X, y)
        assert search.classes_.tolist() == [0, 1, 9]


@pytest.mark.parametrize(
    "change",
    [
        lambda said: dataclasses.replace(said, mu=said.mu * 1.01),
        lambda said: dataclasses.replace(said, mu=None),
        lambda said: object.__setattr__(said, "mu", NAN) or said,
        lambda said: dataclasses.replace(said, seeded=True),
        lambda said: dataclasses.replace(said, adjacency="replace_one"),
        lambda said: dataclasses.replace(said, arithmetic="exact"),
        lambda said: None,
    ],
)
def test_search_refuses_a_fit_that_costs_something_else(
    change, make, data, monkeypatch
):
    genuine = DPFC.fit

    def fit(self, X, y):
        genuine(self, X, y)
        self.privacy_ = change(self.privacy_)
        return self

    monkeypatch.setattr(DPFC, "fit", fit)
    with pytest.raises(PrivacyError, match="every fit"):
        make().fit(*data)


def test_search_refuses_sampled_records(make, data):
    estimator = DPAdamLinear(
        sampling_prob=0.5, accounting="pld", n_iter=2, classes=range(3)
    )
    with pytest.raises(UnsupportedEventError, match="sampled"):
        make(estimator, {"learning_rate": [0.1]}).fit(*data)


@pytest.mark.validation
@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        make_pipeline(StandardScaler(), DPFC()),
        DPFC,
        None,
        DPRandomizedSearch(DPFC(), {}),
    ],
)
def test_search_refuses_an_estimator_without_budget(estimator, data):
    with pytest.raises(TypeError, match="estimator must be a private"):
        DPRandomizedSearch(estimator, {}).fit(*data)


WRONG = {
    "epsilon": [0, -1.0, NAN, -INF, True, "1", 1e-9],
    "delta": [0, 1.0, -1.0, NAN, INF, True, "1", None, 1e-10],
    "mean_runs": [0, 1.0, 1001, NAN, INF, True, "1", None],
    "eta": [-1, -0.6, 11, NAN, INF, True, "1", None],
    "validation_fraction": [0, 1.0, -1, NAN, INF, True, "1", None],
    "random_state": [-1, 2**64, True, 1.5, NAN, "0"],
    "scoring": ["accuracy"],
    "param_distributions": [
        *(None, 1, "ab", [], [1], {"epsilon": [1.0]}, {"rho": [1.0]}),
        *({"random_state": [1]}, {"sampling_prob": [0.5]}, {"unknown": [1]}),
        *({"learning_rate": 1.0}, {"learning_rate": []}, {"classes": [[0, 1]]}),
    ],
}


@pytest.mark.validation
@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name in WRONG for value in WRONG[name]]
)
def test_search_refuses_a_wrong_parameter(name, value, make, data):
    search = make()
    search.set_params(**{name: value})
    with pytest.raises((TypeError, ValueError), match=f"{name}|Parameter|budget"):
        search.fit(*data)
    assert not hasattr(search, "privacy_")


@pytest.mark.validation
def test_search_refuses_half_of_the_validation_data(make, data):
    with pytest.raises(ValueError, match="y_val"):
        make().fit(*data, X_val=data[0])


@pytest.mark.validation
def test_search_refuses_a_score_that_is_no_number(make, data):
    with pytest.raises(TypeError, match="scoring"):
        make(scoring=lambda *_: "good").fit(*data, *data)


def test_search_predicts_as_its_best_estimator(make, data):
    X, y = data
    search = make().fit(X, y)
    best = search.best_estimator_
    np.testing.assert_array_equal(search.predict(X), best.predict(X))
    np.testing.assert_array_equal(search.predict_proba(X), best.predict_proba(X))
    np.testing.assert_array_equal(
        search.decision_function(X), best.decision_function(X)
    )
    assert search.score(X, y) == best.score(X, y)
    assert search.classes_.tolist() == [0, 1, 2]


def test_search_is_cloned_without_and_pickled_with_what_it_found(make, data):
    search = make().fit(*data)
    copy = clone(search)
    assert not [name for name in vars(copy) if name.endswith("_")]
    assert copy.get_params()["estimator__n_iter"] == 2
    copy = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(copy.predict(data[0]), search.predict(data[0]))
    assert copy.privacy_ == search.privacy_


def test_search_leaves_its_parameters_alone(make, data):
    search = make(DPFC(n_iter=2))
    before = search.get_params()
    search.fit(*data)
    assert all(value is before[name] for name, value in search.get_params().items())
    assert not hasattr(search.estimator, "coef_")


@parametrize_with_checks(
    [
        DPRandomizedSearch(
            DPLeastSquares(), {"ridge": [0.1, 0.2]}, epsilon=INF, mean_runs=1.01
        )
    ]
)
def test_search_passes_every_check_of_sklearn(estimator, check):
    check(estimator)


def test_fit_shows_no_progress_bar_which_would_count_the_runs(capfd):
    X, y = np.eye(2)[np.arange(40) % 2], np.arange(40) % 2
    base = DPFC(classes=range(2), n_iter=2, verbose=1)
    DPRandomizedSearch(base, {"ridge": [1.0, 2.0]}).fit(X, y)
    assert capfd.readouterr() == ("", "")


def test_fit_refuses_users():
    base = DPFC(classes=range(2), max_group_size=2)
    with pytest.raises(UnsupportedEventError, match="max_group_size"):
        DPRandomizedSearch(base, {"ridge": [1.0]}).fit(np.eye(2), [0, 1])
