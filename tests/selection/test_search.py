"""DPRandomizedSearch: what it spends, selects, keeps and forgets."""

import math
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import privfeat
from privfeat import DPFC, DPAdamLinear, DPLeastSquares, DPNewton, DPRandomizedSearch
from privfeat.core.accounting.conversions import gaussian_epsilon
from privfeat.core.accounting.selection import selection_epsilon
from privfeat.exceptions import UnsupportedEventError
from tests.selection.conftest import INF

pytestmark = [
    pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning"),
]


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
    # a sixth of rho beside one step, a thirty-sixth beside seven
    expected = pytest.approx(math.sqrt(6.0))
    assert len(multipliers) == 1 or multipliers[7] / multipliers[1] == expected


def test_search_states_its_cost_wherever_it_is_looked_up(make, data, tmp_path):
    search = make().fit(*data)
    assert search.best_estimator_.privacy_ is search.privacy_
    names = [record.name for record in search.privacy_.releases]
    assert names == ["feature_mean", "gram", "gradient", "score"]
    privfeat.save(search.best_estimator_, tmp_path / "model")
    assert privfeat.load(tmp_path / "model").privacy_ == search.privacy_
    assert privfeat.compose([search.privacy_]).epsilon >= 2.0 * (1 - 1e-9)


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


@pytest.mark.slow
@parametrize_with_checks(
    [
        DPRandomizedSearch(
            DPLeastSquares(),
            {"ridge": [0.1, 0.2]},
            epsilon=INF,
            mean_runs=1.01,
            validation_fraction=0.01,  # some checks fit ten records
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


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("prior", "that priors were made without the records"),
        (
            "public",
            "the public rows, which the guarantee does not cover, and that they hold "
            "no record of the fits",
        ),
    ],
)
def test_search_states_what_it_assumes_of_public_parameters(name, told, make, data):
    """As a fit does, which one of the candidates is."""
    given = np.eye(3, data[0].shape[1])
    for estimator, candidates, expected in [
        (DPLeastSquares(classes=range(3)), {"ridge": [1, 2]}, False),
        (DPLeastSquares(classes=range(3)), {name: [None, given]}, True),
        (DPLeastSquares(classes=range(3), **{name: given}), [{"ridge": [1, 2]}], True),
    ]:
        search = make(estimator, candidates, epsilon=3.0).fit(*data)
        assert (told in search.privacy_.public) == expected
        assert (told in search.best_estimator_.privacy_.public) == expected


def test_public_rows_are_looked_at_before_a_search_is_charged(make, data, tmp_path):
    """Its runs, of clones and of parts of the records, would not see its records."""
    budget = {"dataset": "a", "epsilon": 9.0, "delta": 1e-3}
    ledger = privfeat.PrivacyLedger(tmp_path / "a.ledger", **budget)
    gaps = np.full_like(data[0], np.nan)
    for public, words in [(data[0], "not be the records"), (gaps, "be finite")]:
        for own, candidates in [(public, {"ridge": [1]}), (None, {"public": [public]})]:
            estimator = DPLeastSquares(classes=range(3), public=own)
            search = make(estimator, candidates, ledger=ledger)
            with pytest.raises(ValueError, match=f"public must {words}"):
                search.fit(*data)
    assert not ledger.history
