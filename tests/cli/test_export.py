"""`privfeat export`, and every verb on each kind of saved model."""

from pathlib import Path

import numpy as np
import pytest

from privfeat import load, open_features
from tests.cli.patients import fit, rows_of
from tests.export.conftest import write_card

CARD = "---\nlicense: mit\n---\n# Flowers\n"


def session_of(path):
    ort = pytest.importorskip("onnxruntime", reason="pip install 'privfeat[dev]'")
    return ort.InferenceSession(path, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("more", [(), ("--float32",)])
def test_export_writes_a_graph_that_predicts_as_the_model(
    run, model, features, tmp_path, more
):
    pytest.importorskip("onnx", reason="pip install 'privfeat[onnx]'")
    out = tmp_path / "model.onnx"
    assert run("export", model, "--onnx", out, *more)[:2] == (0, f"{out} written\n")
    X = open_features(features)["test"].X[:].astype("f4" if more else "f8")
    (found,) = session_of(out).run(["probabilities"], {"X": X})
    np.testing.assert_allclose(found, load(model).predict_proba(X), atol=1e-12)


def test_export_writes_a_graph_of_the_columns_of_a_table(run, patients, tmp_path):
    pytest.importorskip("onnx", reason="pip install 'privfeat[onnx]'")
    out = tmp_path / "model.onnx"
    assert run("export", patients / "model", "--onnx", out)[0] == 0
    names = {given.name for given in session_of(out).get_inputs()}
    assert {"age", "clinic"} <= names
    assert not names & {"outcome", "patient"}


def test_export_writes_a_graph_of_private_scaling_of_a_table(run, patients, tmp_path):
    pytest.importorskip("onnx", reason="pip install 'privfeat[onnx]'")
    model, out = tmp_path / "model", tmp_path / "model.onnx"
    words = ("--scale", "private", "--quiet", "--out", model)
    assert run(*fit(patients, *words))[0] == 0
    assert run("export", model, "--onnx", out)[0] == 0
    predicted = tmp_path / "p.csv"
    words = ("--model", model, "--features", patients / "test.csv", "--proba")
    assert run("predict", *words, "--out", predicted)[0] == 0
    want = np.genfromtxt(predicted, delimiter=",", skip_header=1, usecols=(3, 4, 5))
    _, age, smoker, clinic, _ = zip(*rows_of(100, 1), strict=True)
    truth = {"yes": 1.0, "no": 0.0, "": np.nan}
    given = {
        "age": np.array(age, np.float64)[:, None],
        "smoker": np.array([[truth[one]] for one in smoker]),
        "clinic": np.array(clinic, dtype=object)[:, None],
    }
    (found,) = session_of(out).run(["probabilities"], given)
    np.testing.assert_allclose(found, want, atol=1e-9)


def test_export_writes_safetensors(run, model, tmp_path):
    library = pytest.importorskip(
        "safetensors", reason="pip install 'privfeat[safetensors]'"
    )
    out = tmp_path / "model.safetensors"
    assert run("export", model, "--safetensors", out)[0] == 0
    with library.safe_open(out, framework="np") as file:
        np.testing.assert_array_equal(file.get_tensor("coef_"), load(model).coef_)


def test_export_prints_what_would_leave_for_the_hub(run, model, tmp_path):
    pytest.importorskip("huggingface_hub", reason="pip install 'privfeat[hub]'")
    write_card(tmp_path / "card.md", Path(model))
    whole = ("export", model, "--hub", "me/flowers", "--card", tmp_path / "card.md")
    status, printed, _ = run(*whole, "--dry-run")
    assert status == 0
    assert "visible to its owners alone:\n  README.md" in printed
    assert printed.endswith("Nothing has left.\n")
    assert "visible to everyone" in run(*whole, "--dry-run", "--hub-public")[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "export needs --onnx, --safetensors or --hub"),
        (("--hub", "me/flowers"), "--hub and --card must be given together"),
        (("--onnx", "m", "--dry-run"), "--dry-run and --hub-public are for --hub"),
        (("--safetensors", "m", "--float32"), "--float32 is for --onnx"),
    ],
)
def test_export_refuses_options_that_do_not_go_together(fails, model, words, message):
    assert message in fails("export", model, *words)


def test_export_refuses_what_is_no_model(fails, tmp_path):
    pytest.importorskip("onnx", reason="pip install 'privfeat[onnx]'")
    message = fails("export", tmp_path, "--onnx", tmp_path / "m.onnx")
    assert "is not a privfeat model" in message
