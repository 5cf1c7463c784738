"""What onnxruntime makes of an exported model is what the model makes."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.preprocessing import Normalizer

from privfeat import (
    DPFC,
    DPAdamLinear,
    DPLeastSquares,
    DPLeastSquaresRegressor,
    DPNearestMean,
    DPNewton,
    PrivacyLedger,
    PrivatePipeline,
    TemperatureScaling,
)
from privfeat._types import STAYS_AT_HOME
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.exceptions import PrivacyWarning
from privfeat.export import export_onnx
from privfeat.persistence import load, save
from privfeat.preprocessing import DPPCA, DPStandardScaler

onnx = pytest.importorskip("onnx", reason="pip install 'privfeat[onnx]'")
ort = pytest.importorskip("onnxruntime", reason="pip install 'privfeat[dev]'")
LINEAR = (DPFC, DPAdamLinear, DPLeastSquares, DPNearestMean, DPNewton)


def answers(model, X, path, **options):
    """Return what onnxruntime makes of rows, by the names of the outputs."""
    export_onnx(model, path, **options)
    session = quiet_session(path)
    names = [output.name for output in session.get_outputs()]
    given = X if isinstance(X, dict) else {"X": X}
    return dict(zip(names, session.run(names, given), strict=True))


def quiet_session(path):
    options = ort.SessionOptions()
    options.log_severity_level = 4  # refused rows are meant
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def assert_same(model, X, path, **options):
    found = answers(model, X, path, **options)
    assert {*found} == {"label", "probabilities", "scores"}
    np.testing.assert_array_equal(found["label"], model.predict(X))
    near = {"rtol": 1e-12, "atol": 1e-13, "strict": True}
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), **near)
    if hasattr(model, "decision_function"):
        np.testing.assert_allclose(
            found["scores"], model.decision_function(X), **(near | {"rtol": 1e-9})
        )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.onnx"


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("row_scaling", ["unit", "clip"])
@pytest.mark.parametrize("cls", LINEAR)
def test_graph_of_a_classifier_predicts_as_it_does(
    fit, rows, path, cls, row_scaling, n_classes
):
    assert not rows.any(axis=1).all()  # a row of zeros is among them
    assert_same(fit(cls, n_classes, row_scaling=row_scaling), rows, path)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", ["softmax", "sigmoid", "squared"])
@pytest.mark.parametrize("center", [False, True])
def test_graph_of_a_loss_predicts_as_it_does(fit, rows, path, loss, n_classes, center):
    assert_same(fit(DPFC, n_classes, loss=loss, center=center), rows, path)


def test_graph_of_weighted_classes_predicts_as_they_do(fit, rows, path):
    assert_same(fit(DPFC, class_weight="balanced"), rows, path)


def test_graph_shifts_rows_by_a_public_center(fit, rows, path):
    center = np.full(rows.shape[1], 0.3)
    assert_same(fit(DPLeastSquares, center=center, row_scaling="clip"), rows, path)


@pytest.mark.parametrize("params", [{}, {"fit_intercept": False}])
@pytest.mark.parametrize("n_classes", [1, 2, 3])
@pytest.mark.parametrize("cls", [DPFC, DPLeastSquares])
def test_graph_of_several_labels_predicts_as_they_do(
    rows, path, cls, n_classes, params
):
    y = np.random.default_rng(1).integers(2, size=(len(rows), n_classes))
    model = cls(epsilon=5.0, classes=range(n_classes), **params).fit(rows, y)
    assert_same(model, rows, path)


def test_graph_undoes_the_weight_of_absent_labels(rows, path):
    y = np.random.default_rng(1).integers(2, size=(len(rows), 3))
    model = DPLeastSquares(epsilon=9.0, classes=range(3), class_gram=True, alpha=0.2)
    assert_same(model.fit(rows, y), rows, path)


@pytest.mark.parametrize(
    "names", [("no", "yes"), (False, True), (1.5, 2.0, 3.0), (3, 70, 500)]
)
def test_graph_returns_every_kind_of_label(fit, rows, path, names):
    assert_same(fit(DPLeastSquares, len(names), names=names), rows, path)


def test_graph_returns_labels_that_were_objects(fit, rows, path):
    names = np.array(["a", "b", "c"], dtype=object)
    assert_same(fit(DPLeastSquares, names=names), rows, path)


@pytest.mark.parametrize("row_scaling", ["unit", "clip"])
def test_graph_of_a_regressor_predicts_as_it_does(rows, path, row_scaling):
    model = DPLeastSquaresRegressor(
        epsilon=5.0, target_bounds=(-3, 9), row_scaling=row_scaling
    )
    model.fit(rows, np.clip(3.0 * rows[:, 0], -2.9, 8.9))
    (found,) = answers(model, 9.0 * rows, path).values()
    np.testing.assert_allclose(found, model.predict(9.0 * rows), rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_graph_of_a_scaled_classifier_predicts_as_it_does(fit, rows, path, n_classes):
    clf = fit(DPLeastSquares, n_classes)
    scaled = TemperatureScaling(clf, epsilon=1.0)
    scaled.fit(rows, np.arange(len(rows)) % n_classes)
    assert scaled.temperature_ != 1.0
    assert_same(scaled, rows, path)


def test_graph_takes_rows_of_float32(fit, rows, path):
    assert_same(fit(DPFC), rows.astype(np.float32), path, dtype="float32")


def test_graph_takes_any_number_of_rows(fit, rows, path):
    model = fit(DPFC)
    for some in (rows[:1], rows[:0]):
        assert answers(model, some, path)["probabilities"].shape == (len(some), 3)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_graph_fails_for_a_row_that_is_not_finite(fit, rows, path, value, n_classes):
    """As ``predict`` does; whichever output is asked for."""
    model, planted = fit(DPFC, n_classes), rows.copy()
    planted[3, 1] = value
    export_onnx(model, path)
    for name in ("label", "probabilities", "scores"):
        with pytest.raises(Exception, match="out of data bounds"):
            quiet_session(path).run([name], {"X": planted})
    with pytest.raises(ValueError, match="X"):
        model.predict(planted)


def test_graph_of_others_fails_for_a_row_that_is_not_finite(rows, path):
    y = np.random.default_rng(1).integers(2, size=(len(rows), 3))
    several = DPFC(epsilon=5.0, classes=range(3)).fit(rows, y)
    number = DPLeastSquaresRegressor(epsilon=1.0, target_bounds=(-9, 9))
    planted = rows.copy()
    planted[3, 1] = np.nan
    for model in (several, number.fit(rows, rows[:, 0])):
        with pytest.raises(Exception, match="out of data bounds"):
            answers(model, planted, path)


def test_metadata_holds_the_statement_and_the_names_of_classes(fit, path):
    model = fit(DPFC)
    export_onnx(model, path, class_names=["ant", "bee", "cat"])
    found = {p.key: p.value for p in onnx.load(path).metadata_props}
    assert {*found} == {"privfeat_version", "estimator", "privacy", "class_names"}
    assert PrivacyStatement.from_json(found["privacy"]) == model.privacy_
    assert json.loads(found["class_names"]) == ["ant", "bee", "cat"]
    assert found["estimator"] == "DPFC"


def test_names_of_classes_that_a_model_was_saved_with_go_on(fit, rows, path, tmp_path):
    save(fit(DPFC), tmp_path / "model", class_names=["ant", "bee", "cat"])
    loaded = load(tmp_path / "model")
    scaled = TemperatureScaling(loaded).fit(rows, np.arange(len(rows)) % 3)
    for model in (loaded, scaled):
        export_onnx(model, path)
        found = {p.key: p.value for p in onnx.load(path).metadata_props}
        assert json.loads(found["class_names"]) == ["ant", "bee", "cat"]


def test_metadata_holds_the_statement_of_a_temperature(fit, rows, path):
    clf, y = fit(DPFC), np.arange(len(rows)) % 3
    private = TemperatureScaling(clf, epsilon=1.0).fit(rows, y)
    public = TemperatureScaling(clf, public=True).fit(rows, y)
    for scaled in (private, public):
        export_onnx(scaled, path)
        found = {p.key: p.value for p in onnx.load(path).metadata_props}
        assert found["estimator"] == "DPFC, TemperatureScaling"
        told = "privacy_of_temperature"
        assert (told in found) == (scaled is private)
        if scaled is private:
            assert PrivacyStatement.from_json(found[told]) == scaled.privacy_


def test_file_holds_nothing_that_stays_at_home(rows, path, tmp_path):
    y = np.arange(len(rows)) % 2
    model = DPFC(epsilon=5.0, classes=[0, 1], random_state=987654321)
    with pytest.warns(match="random_state"):
        model.fit(rows, y)
    ledger = PrivacyLedger(
        tmp_path / "secret.ledger", dataset="secret", epsilon=9, delta=1e-4
    )
    with pytest.warns(PrivacyWarning, match="a model that leaves .* seeded=True"):
        export_onnx(model.set_params(ledger=ledger), path)
    content = path.read_bytes()
    for secret in (b"987654321", b"secret", str(tmp_path).encode()):
        assert secret not in content
    metadata = {p.key for p in onnx.load(path).metadata_props}
    assert not metadata & {*STAYS_AT_HOME}


def test_export_onnx_refuses_what_is_not_ours(fit, rows, path):
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    free = LogisticRegression().fit(rows, np.arange(len(rows)) % 2)
    scaled = make_pipeline(StandardScaler().fit(rows), fit(DPFC))
    for model, message in ((free, "got LogisticRegression"), (scaled, "StandardSc")):
        with pytest.raises(TypeError, match=message):
            export_onnx(model, path)
    assert not path.exists()


def test_export_onnx_refuses_classes_that_onnx_has_no_type_for(fit, path):
    names = np.array([0, 2**64 - 1], np.uint64)
    with pytest.raises(TypeError, match="got type uint64"):
        export_onnx(fit(DPLeastSquares, 2, names=names), path)


def test_export_onnx_refuses_a_wrong_number_of_class_names(fit, path):
    with pytest.raises(ValueError, match="class_names must have 3 entries, got 1"):
        export_onnx(fit(DPFC), path, class_names=["a"])


def test_export_onnx_of_a_linear_model_refuses_bytes(fit, path):
    with pytest.raises(ValueError, match="dtype must be float64 or float32"):
        export_onnx(fit(DPFC), path, dtype="uint8")


@pytest.fixture
def piped(rows):
    """Return a function that fits private steps to rows, and a classifier at last."""

    def fitted(*steps):
        named = [(type(step).__name__, step) for step in steps]
        clf = DPLeastSquares(classes=range(3), row_scaling="clip", clip_norm=2.0)
        model = PrivatePipeline([*named, ("clf", clf)], epsilon=9.0)
        return model.fit(rows, np.arange(len(rows)) % 3)

    return fitted


@pytest.mark.parametrize("kind", ["scaler", "pca", "both"])
def test_graph_of_private_steps_predicts_as_they_do(kind, piped, rows, path):
    """Rows outside of the bounds of the scaler are among them."""
    steps = {
        "scaler": [DPStandardScaler(bounds=(-1.5, 2.0))],
        "pca": [DPPCA(n_components=2)],
        "both": [DPStandardScaler(bounds=(-1.5, 2.0)), DPPCA(n_components=3)],
    }
    assert_same(piped(*steps[kind]), rows, path)


def test_graph_of_private_steps_fails_for_a_row_that_is_not_finite(piped, rows, path):
    """The scaler cuts infinity, but ``predict`` refuses it."""
    export_onnx(piped(DPStandardScaler(bounds=(-1.5, 2.0))), path)
    planted = rows.copy()
    planted[3, 1] = np.inf
    with pytest.raises(Exception, match="out of data bounds"):
        quiet_session(path).run(None, {"X": planted})


def test_export_onnx_refuses_other_public_steps(piped, path):
    with pytest.raises(TypeError, match="got Normalizer"):
        export_onnx(piped(Normalizer()), path)


def test_export_onnx_replaces_a_file_whole(fit, path):
    path.write_text("before")
    export_onnx(fit(DPFC), path)
    assert [*Path(path).parent.iterdir()] == [path]
    onnx.checker.check_model(onnx.load(path))
