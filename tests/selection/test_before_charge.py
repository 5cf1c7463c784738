"""What a fit refuses before its charge, cross-validation and searches do as well."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures

from privfeat import (
    DPFC,
    DPAdamLinear,
    DPNearestMean,
    DPRandomizedSearch,
    PrivacyLedger,
    PrivacyWarning,
    PrivatePipeline,
    PublicColumns,
)
from privfeat.core.sums.arithmetic import host
from privfeat.exceptions import PrivacyError
from privfeat.metrics import evaluation_of_predictions
from privfeat.preprocessing import DPPCA, DPQuantiles, DPStandardScaler
from privfeat.selection import private_cross_val_score

RIDGES = {"ridge": [1, 2]}


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "l", dataset="d", epsilon=9.0, delta=1e-5)


@pytest.fixture
def data():
    X = np.random.default_rng(0).uniform(-1, 1, (60, 60))
    return X, (X[:, 0] > 0).astype(int)


def clf(**options):
    return DPFC(classes=[0, 1], n_iter=1, **options)


def scaled(last):
    return PrivatePipeline([("scale", DPStandardScaler(bounds=(-1, 1))), ("clf", last)])


def search(estimator, ridges, ledger):
    return DPRandomizedSearch(estimator, ridges, mean_runs=1.5, ledger=ledger).fit


# Every way in which a classifier is fitted for a charge.
EDGES = {
    "fit": lambda last, ledger: last.set_params(ledger=ledger).fit,
    "pipeline": lambda last, ledger: scaled(last).set_params(ledger=ledger).fit,
    "search": lambda last, ledger: search(last, RIDGES, ledger),
    "search of a pipeline": lambda last, ledger: search(
        scaled(last), {"clf__ridge": [1, 2]}, ledger
    ),
    "folds": lambda last, ledger: (
        lambda X, y: private_cross_val_score(last, X, y, n_splits=2, ledger=ledger)
    ),
    "folds of a pipeline": lambda last, ledger: (
        lambda X, y: private_cross_val_score(
            scaled(last), X, y, n_splits=2, ledger=ledger
        )
    ),
}


@pytest.fixture(params=EDGES.values(), ids=EDGES)
def edge(request):
    return request.param


@pytest.mark.parametrize("last", [False, True])
def test_no_record_ends_a_search_over_public_steps(ledger, last):
    """The logarithm of one 0 did, after the charge, which told that it is there."""
    X = np.random.default_rng(0).uniform(0.5, 9.0, (200, 3))
    X[0, 0] = 0.0
    steps = [("f", FunctionTransformer(np.sqrt)), ("p", PolynomialFeatures())]
    pipeline = PrivatePipeline([*steps[: 2 if last else 1], ("clf", clf())])
    found = DPRandomizedSearch(
        pipeline, {"f__func": [np.log]}, mean_runs=1.5, ledger=ledger
    ).fit(X, (X[:, 0] > 5).astype(int))
    assert len(ledger.history) == 1
    assert found.best_params_ == {"f__func": np.log}


@pytest.mark.parametrize(
    ("step", "name"),
    [
        (PublicColumns({"a": {"kind": "integer", "bounds": [0, 9]}}), "f__columns"),
        (FrozenEstimator(PolynomialFeatures().fit([[0.0]])), "f__estimator"),
        (HashingVectorizer(), "f__encoding"),
    ],
)
def test_a_search_leaves_declared_steps_as_they_are(ledger, step, name):
    """Another declaration may refuse a record, after the charge."""
    pipeline = PrivatePipeline([("f", step), ("clf", clf())])
    search = DPRandomizedSearch(pipeline, {name: [None]}, ledger=ledger)
    with pytest.raises(ValueError, match="param_distributions must hold parameters"):
        search.fit([[1.0]] * 60, [0, 1] * 30)
    assert ledger.history == []


def test_public_rows_that_are_the_records_are_refused(edge, data, ledger):
    X, y = data
    with pytest.raises(ValueError, match="public must not be the records"):
        edge(clf(public=X), ledger)(X, y)
    assert ledger.history == []


def test_public_rows_that_are_not_finite_are_refused(edge, data, ledger):
    public = np.full((5, 60), np.nan)
    with pytest.raises(ValueError, match="public must be finite"):
        edge(clf(public=public), ledger)(*data)
    assert ledger.history == []


def test_parameters_that_can_be_read_once_are_refused(edge, data, ledger):
    with pytest.raises(TypeError, match="prior must be a list, an array or a tuple"):
        edge(clf(prior=iter(np.eye(2, 60))), ledger)(*data)
    assert ledger.history == []


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({0.1, 0.5}, id="set"),
        pytest.param({"low": 0.1}.values(), id="view"),
        pytest.param({0.1: "low"}, id="mapping"),
        pytest.param(iter([0.1]), id="iterator"),
    ],
)
def test_quantiles_that_are_no_list_are_refused(given, data, ledger):
    with pytest.raises((TypeError, ValueError), match="quantiles must be a list"):
        DPQuantiles(quantiles=given, ledger=ledger).fit(data[0])
    assert ledger.history == []


def test_a_pipeline_reads_users_once(data):
    model = scaled(clf()).set_params(max_group_size=2)
    model.fit(*data, groups=map(str, np.arange(60) // 2))
    assert model.privacy_.unit == "user"


def test_users_in_bytes_have_folds(data):
    users = np.array([f"p{i // 2}" for i in range(60)], dtype="S")
    found = private_cross_val_score(
        clf(), *data, groups=users, max_group_size=2, n_splits=3
    )
    assert found.privacy.unit == "user"


def test_a_gram_matrix_without_room_is_refused(edge, data, ledger, plant):
    plant("memory of the machine", lambda: 8.0 * 6 * 50.5**2)
    with pytest.raises(ValueError, match="at most 50 columns for DPFC, got 61"):
        edge(clf(), ledger)(*data)
    assert ledger.history == []


@pytest.mark.parametrize("kind", [DPFC, DPAdamLinear])
def test_classes_without_room_are_refused(edge, kind, data, ledger, plant):
    plant("memory of the machine", lambda: 8.0 * 8 * 60 * 1999)
    many = kind(classes=range(2000))
    with pytest.raises(ValueError, match=f"what {kind.__name__} releases, 12[02],000"):
        edge(many, ledger)(*data)
    assert ledger.history == []


def test_cells_without_room_are_refused(data, ledger, plant):
    plant("memory of the machine", lambda: 8.0 * 8 * 60 * 5459)
    with pytest.raises(ValueError, match="what DPQuantiles releases, 327,600 numbers"):
        DPQuantiles(n_levels=6, ledger=ledger).fit(data[0])
    assert ledger.history == []


def test_rows_wider_than_the_margins_cover_are_refused_by_a_pipeline(ledger):
    steps = [("hash", HashingVectorizer()), ("clf", DPAdamLinear(classes=[0, 1]))]
    wide = PrivatePipeline(steps, epsilon=1.0, ledger=ledger)
    wide.set_params(clf__center=False)
    with pytest.raises(ValueError, match="fewer than 200000 columns, got 1048576"):
        wide.fit(["very ill", "healthy"] * 20, [0, 1] * 20)
    assert ledger.history == []


@pytest.mark.parametrize("public", [False, True])
def test_a_pipeline_of_texts_is_searched(public):
    steps = [("hash", HashingVectorizer(n_features=8)), ("clf", DPNearestMean())]
    pipeline = PrivatePipeline(steps).set_params(clf__center=False)
    pipeline.set_params(clf__classes=[0, 1])
    found = DPRandomizedSearch(
        pipeline, {"clf__clip_norm": [1.0]}, epsilon=50.0, random_state=0
    )
    scored_on = (["ill", "healthy"], [0, 1]) if public else ()
    with pytest.warns(PrivacyWarning):  # of the seed
        found.fit(["very ill", "healthy"] * 200, [0, 1] * 200, *scored_on)
    assert found.predict(["very ill", "healthy"]).tolist() == [0, 1]


@pytest.mark.parametrize("within", [False, True], ids=["alone", "in a pipeline"])
def test_principal_directions_without_room_are_refused(within, data, ledger, plant):
    plant("memory of the machine", lambda: 8.0 * 6 * 50.5**2)
    one = DPPCA(n_components=2)
    if within:
        one = PrivatePipeline([("pca", one), ("clf", clf())])
    with pytest.raises(ValueError, match="at most 50 columns for DPPCA, got 60:"):
        one.set_params(epsilon=1.0, ledger=ledger).fit(*data)
    assert ledger.history == []


def test_folds_state_what_is_assumed_of_public_parameters(data):
    last = clf(public=np.eye(60), prior=np.eye(2, 60))
    for estimator in (last, scaled(last)):
        said = " ".join(
            private_cross_val_score(estimator, *data, n_splits=2).privacy.public
        )
        assert "that priors were made without the records" in said
        assert "the public rows, which the guarantee does not cover" in said


def test_rows_that_a_step_has_no_room_for_are_refused(data, ledger, plant):
    steps = [
        ("scale", DPStandardScaler(bounds=(-1, 1))),
        ("more", PolynomialFeatures()),
    ]
    wide = PrivatePipeline([*steps, ("clf", DPNearestMean(classes=[0, 1]))])
    plant("memory of the machine", lambda: 3 * 8.0 * 60 * 400)
    with pytest.raises(ValueError, match="what step 'more' makes of the records"):
        wide.set_params(epsilon=1.0, ledger=ledger).fit(*data)
    assert ledger.history == []


def test_a_confusion_matrix_without_room_is_refused(ledger, plant):
    plant("memory of the machine", lambda: 64.0 * 20.5**2)
    options = {"epsilon": 1.0, "ledger": ledger}
    evaluation_of_predictions([0, 1], [0, 1], classes=range(20), **options)
    with pytest.raises(ValueError, match="the confusion matrix must fit into memory"):
        evaluation_of_predictions([0, 1], [0, 1], classes=range(21), **options)
    assert len(ledger.history) == 1


@pytest.fixture
def fresh_rows():
    """Forget what was found of this machine, now and afterwards."""
    host.rows_are_alike.cache_clear()
    yield
    host.rows_are_alike.cache_clear()


def last_row_apart(loss, scores, labels):
    """As code for the rest of a vector, which rounds otherwise."""
    found = np.array(scores)
    found[-1] = np.nextafter(found[-1], np.float32(np.inf))
    return found


@pytest.mark.usefixtures("fresh_rows")
@pytest.mark.parametrize("edge", [*EDGES.values()][1:], ids=[*EDGES][1:])
def test_a_machine_that_treats_rows_differently_charges_nothing(
    edge, data, ledger, plant
):
    plant("residuals of the loss", last_row_apart)
    with pytest.raises(PrivacyError, match="NumPy must treat all rows alike"):
        edge(clf(), ledger)(*data)
    assert ledger.history == []


@pytest.mark.usefixtures("fresh_rows")
def test_principal_directions_of_such_a_machine_charge_nothing(data, ledger, plant):
    plant("residuals of the loss", last_row_apart)
    with pytest.raises(PrivacyError, match="NumPy must treat all rows alike"):
        DPPCA(n_components=2, epsilon=1.0, ledger=ledger).fit(*data)
    assert ledger.history == []
