"""The score of a run: its noise, its bound, and the records it is from."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from privfeat import DPFC, DPLeastSquares
from privfeat.core.noise.keys import KeyStream
from privfeat.core.noise.observation import observe
from privfeat.core.private_fit import PrivateFit
from privfeat.core.statement.selection import Selection
from privfeat.core.sums.records import CHUNK_ROWS
from privfeat.selection import runs as runs_of
from privfeat.selection.inputs import statement_of
from privfeat.selection.runs import Runner
from tests.selection.conftest import INF, NAN

pytestmark = [
    pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning"),
]


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_score_has_the_noise_and_sensitivity_of_a_run(adjacency, make, data, plant):
    sums, plans, genuine = [], [], plant.genuine("mechanism of a fit")

    def mechanism(self, plan):
        plans.append(plan)
        return genuine(self, plan)

    def note(exact, release):
        if release.name == "score":
            sums.append((exact.value, plans[-1]))
        return release

    plant("mechanism of a fit", mechanism)
    estimator = DPFC(n_iter=2, classes=range(3), adjacency=adjacency)
    with observe(note):
        search = make(estimator, validation_fraction=0.5).fit(*data)
    (exact, plan), record = sums[0], search.privacy_.releases[-1]
    assert exact == round(float(exact))
    assert plan.mu <= search.privacy_.selection.run_mu * (1 + 1e-9)
    assert record.l2_sensitivity == (1.0 if adjacency == "add_remove" else 2.0)
    assert record.noise_stddev == plan["score"].noise_stddev > 0.0
    assert record.noise_multiplier == pytest.approx(1 / plan.mu)


def test_search_in_exact_arithmetic_releases_whole_numbers(make, data, plant):
    def fail(*_):
        raise AssertionError

    for name in ("Gaussian noise", "symmetric Gaussian noise"):
        plant(name, fail)
    search = make(DPFC(n_iter=2, classes=range(3), arithmetic="exact")).fit(*data)
    assert search.privacy_.arithmetic == "exact"
    assert search.best_score_ * 2**20 == round(search.best_score_ * 2**20)
    assert search.best_score_ != round(search.best_score_)


def selecting(seed=1, arithmetic="float64"):
    """A search that is charged: its scores may draw noise."""
    selection = Selection(run_mu=0.5, eta=0.0, gamma=0.1, scored_on="holdout")
    statement = statement_of(
        selection,
        DPLeastSquares(classes=range(3), arithmetic=arithmetic),
        epsilon=1.0,
        delta=1e-5,
        features="the number of features (2)",
        seeded=False,
        candidates={},
        fewest=12,
    )
    return PrivateFit(SimpleNamespace(), statement, KeyStream(seed), ()).charging()


@pytest.mark.slow
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
    n_records, ours, plant
):
    """Products of matrices round differently for different numbers of rows."""
    plant("whether an estimator is ours", lambda fitted: ours)
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


@pytest.mark.parametrize(("kept", "n_rows"), [(True, 1024), (False, 1)])
def test_rows_are_scored_alone_where_a_product_may_have_threads(plant, kept, n_rows):
    plant("whether an estimator is ours", lambda fitted: True)
    plant("whether products keep to one thread", lambda: kept)
    shapes = []

    class Spied:
        coef_ = None  # as linear ones have

        def predict(self, X):
            shapes.append(X.shape)
            return np.zeros(len(X), int)

    plan = Runner(DPFC(), {}, range(2), 0.5, KeyStream(1)).score_plan()
    with selecting() as fit:
        runs_of.HoldoutScore(np.ones((3, 2)), np.zeros(3, int), plan, fit)(Spied())
    assert set(shapes) == {(n_rows, 2)}


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


def test_search_trains_and_scores_on_disjoint_records(make, data, plant):
    sizes = []
    genuine = plant.genuine("best run of a search")

    def best(self, X, y, score, runs):
        sizes.append((len(X), len(score._X)))
        rows = np.vstack([X, score._X])
        assert len(np.unique(rows, axis=0)) == len(rows)
        return genuine(self, X, y, score, runs)

    plant("best run of a search", best)
    make(validation_fraction=0.3).fit(*data)
    make(validation_fraction=0.3).fit(*data)
    assert all(trained + held_out == 60 for trained, held_out in sizes)
    assert 0 < sizes[0][1] < 40


def test_search_with_public_validation_data_trains_on_all_records(make, data, plant):
    sizes, genuine = [], plant.genuine("one run of a search")

    def run(self, X, y, score):
        sizes.append(len(X))
        return genuine(self, X, y, score)

    plant("one run of a search", run)
    X, y = data
    search = make().fit(X, y, X[:20].copy(), y[:20])
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
    search = make(scoring=lambda *_: 0.5).fit(X, y, X.copy(), y)
    assert search.best_estimator_ is runs[0].estimator


def test_search_takes_a_score_of_nan_for_the_worst(make, data, runs, five_runs):
    X, y = data
    # the first is of made-up records, before the search is charged
    values = iter([-1.0, NAN, NAN, -7.0, NAN, -8.0])
    search = make(scoring=lambda *_: next(values)).fit(X, y, X.copy(), y)
    assert search.best_score_ == -7.0
    assert search.best_estimator_ is runs[2].estimator
    assert make(scoring=lambda *_: NAN).fit(X, y, X.copy(), y).best_score_ == -INF
