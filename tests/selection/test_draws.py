"""What a search draws, keeps and releases."""

import collections

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from privfeat import DPFC
from privfeat.selection import runs as runs_of
from privfeat.selection.runs import PublicScore, Runner
from tests.selection.conftest import INF

pytestmark = [
    pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning"),
]


def test_search_without_privacy_finds_the_better_candidate(make, data, five_runs):
    X, y = data
    search = make(
        DPFC(n_iter=1, classes=range(3)),
        [{"learning_rate": [1e-9], "intercept_init": [0.0]}, {"ridge": [0.1]}],
        epsilon=INF,
    )
    while True:
        search.fit(X, y, X.copy(), y)
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
    kept = {*search.get_params(deep=False), "_params_of_fit"}
    assert set(vars(search)) - fitted == kept
    assert (
        vars(search.best_estimator_).keys()
        == vars(DPFC(n_iter=2, classes=range(3)).fit(*data)).keys()
    )


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize("in_holdout", [True, False])
def test_search_on_neighbours_differs_in_released_values_alone(
    adjacency, in_holdout, make, data, plant
):
    """One record more, or another: with its release as answers, all else is equal."""
    X, y = data
    masks = np.arange(61) % 3 == 0
    masks[60] = in_holdout
    plant("split of the records", lambda key, n, p: masks[:n])
    calls, answers, genuine = [], [], plant.genuine("release of a sum")

    def release(self, name, exact, **options):
        drawn = genuine(self, name, exact, **options)
        calls.append((name, np.array(exact.value)))
        if len(answers) < len(calls):
            answers.append(drawn)
        return answers[len(calls) - 1]

    plant("release of a sum", release)
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


@pytest.mark.slow
@pytest.mark.statistical
def test_search_draws_candidates_uniformly(make, data, plant):
    """Chi-square over 600 draws of 6 candidates; false-positive rate 1e-6."""
    plant("fit of a linear model", lambda self, X, y: self, of=DPFC)
    plant("check of a search", lambda *_: None)
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


@pytest.mark.parametrize("kind", [list, np.asarray, pd.DataFrame], ids=str)
def test_public_rows_are_made_of_the_first_one(kind):
    rows = PublicScore(kind([[1.0, 2.0], [3.0, 4.0]]), [0, 1], None).rows(3)
    assert np.asarray(rows).tolist() == [[1.0, 2.0]] * 3
