"""A private search over the parameters of all steps of a pipeline."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from privfeat import (
    DPLeastSquares,
    DPRandomizedSearch,
    HashKFold,
    PrivacyLedger,
    PrivacyWarning,
    PrivatePipeline,
    PublicColumns,
    search_cost,
)
from privfeat.core.accounting.conversions import gaussian_mu
from tests.pipeline.conftest import scaled

GRID = {"clf__ridge": [1.0, 10.0], "shares": [None, {"scale": 1, "clf": 2}]}


def search(estimator=None, grid=None, **options):
    options = {"epsilon": 4.0, "mean_runs": 2.0} | options
    return DPRandomizedSearch(
        estimator or scaled(epsilon=None), grid or GRID, **options
    )


def test_a_search_over_a_pipeline_is_charged_as_one(tmp_path, columns):
    ledger = PrivacyLedger(tmp_path / "l", dataset="d", epsilon=4.0, delta=1e-5)
    found = search(ledger=ledger).fit(*columns)
    (charge,) = ledger.history
    assert charge.estimator == "DPRandomizedSearch(PrivatePipeline)"
    assert charge.statement.epsilon == found.privacy_.epsilon == 4.0
    assert set(found.best_params_) == set(GRID)
    assert found.predict_proba(columns[0]).shape == (2000, 2)


def test_a_run_over_a_pipeline_costs_what_a_run_may(columns):
    found = search().fit(*columns)
    releases = [r for r in found.privacy_.releases if r.name != "score"]
    assert {r.name.split(".")[0] for r in releases} == {"scale", "clf"}
    spent = sum(r.count / r.noise_multiplier**2 for r in releases)
    assert spent <= found.privacy_.selection.run_mu**2
    assert spent == pytest.approx(found.privacy_.selection.run_mu**2, rel=1e-6)


def test_all_that_is_released_has_the_statement_of_the_search(columns):
    found = search().fit(*columns)
    steps = [step for _, step in found.best_estimator_.steps_]
    for one in (found.best_estimator_, *steps):
        assert one.privacy_ is found.privacy_


def test_a_search_reads_a_table_as_its_pipeline_does():
    declared = {
        "age": {"kind": "integer", "bounds": [0, 100]},
        "clinic": {"kind": "category", "categories": ["Bonn", "Kiel"]},
    }
    table = pd.DataFrame({"age": [10, 90] * 300, "clinic": ["Bonn", "Kiel"] * 300})
    steps = [
        ("columns", PublicColumns(declared)),
        ("clf", DPLeastSquares(classes=[0, 1])),
    ]
    model = search(PrivatePipeline(steps), {"clf__ridge": [1.0]}, epsilon=20.0)
    model.fit(table, [0, 1] * 300)
    assert model.predict(table.iloc[:2]).tolist() == [0, 1]


def test_a_table_that_the_columns_refuse_charges_nothing(tmp_path):
    ledger = PrivacyLedger(tmp_path / "l", dataset="d", epsilon=4.0, delta=1e-5)
    declared = {"clinic": {"kind": "category", "categories": ["Bonn", "Kiel"]}}
    steps = [
        ("columns", PublicColumns(declared)),
        ("clf", DPLeastSquares(classes=[0, 1])),
    ]
    model = search(PrivatePipeline(steps), {"clf__ridge": [1.0]}, ledger=ledger)
    table = pd.DataFrame({"clinic": ["Bonn", "Kiel", "Jena"] * 20})
    with pytest.raises(ValueError, match="clinic"):
        model.fit(table, [0, 1, 1] * 20)
    assert ledger.history == []


@pytest.mark.parametrize(
    "name",
    [
        *("epsilon", "clf__rho", "clf__epsilon", "scale__ledger", "clf__classes"),
        *("steps", "clf", "clf__random_state", "random_state"),
    ],
)
def test_a_search_leaves_budgets_and_steps_alone(name, columns):
    with pytest.raises(ValueError, match="must hold parameters among"):
        search(grid={name: [1.0]}).fit(*columns)


def test_a_pipeline_of_scikit_learn_is_refused_with_the_remedy(columns):
    other = make_pipeline(Normalizer(), DPLeastSquares(classes=[0, 1]))
    with pytest.raises(TypeError, match=r"Pass PrivatePipeline\(steps\)"):
        search(other, {"dpleastsquares__ridge": [1.0]}).fit(*columns)


def test_classes_of_the_last_step_are_read_once(columns):
    model = scaled(DPLeastSquares(row_scaling="clip"), epsilon=None)
    with pytest.warns(PrivacyWarning, match="classes=None") as caught:
        found = search(model, {"clf__ridge": [1.0]}).fit(*columns)
    assert len([w for w in caught if "classes=None" in str(w.message)]) == 1
    assert "the set of classes (read from y)" in found.privacy_.public


def test_search_cost_is_that_of_all_steps():
    grid = GridSearchCV(scaled(epsilon=1.0), {"clf__ridge": [1, 2]}, cv=HashKFold(3))
    with pytest.warns(PrivacyWarning):
        cost = search_cost(grid)
    assert cost.n_fits == 7
    assert cost.mu == pytest.approx(7**0.5 * gaussian_mu(1.0, 1e-5), rel=1e-9)
    assert np.isfinite(cost.epsilon)
    assert not any("earlier steps" in fact for fact in cost.not_covered)
