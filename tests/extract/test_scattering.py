import json
import subprocess
import sys

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier

from privfeat.data import open_features

pytest.importorskip("kymatio")


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """Return the feature file of the digits, made where torch cannot be imported."""
    path = tmp_path_factory.mktemp("digits") / "digits.h5"
    code = (
        "import sys, json\n"
        "from privfeat_extract.cli import main\n"
        "status = main(sys.argv[1:])\n"
        "print(json.dumps(sorted({'torch', 'timm', 'PIL'} & set(sys.modules))))\n"
        "sys.exit(status)\n"
    )
    argv = ["--data", "digits", "--model", "scattering", "--out", str(path)]
    done = subprocess.run(
        [sys.executable, "-c", code, *argv], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout.splitlines()[-1]) == []
    return path


@pytest.mark.slow
def test_scattering_of_digits_needs_neither_torch_nor_pillow(digits):
    file = open_features(digits)
    assert file["train"].X.shape == (1438, 272)
    assert file["test"].X.shape == (359, 272)
    assert file["train"].X.dtype == np.float16
    assert file.class_names == tuple("0123456789")
    assert file.metadata["model"] == "scattering"
    assert file.metadata["dataset"] == "digits"
    assert file.metadata["model_kwargs"] == {"J": 2, "L": 8, "max_order": 1}


@pytest.mark.slow
def test_scattering_of_digits_is_linearly_separable(digits):
    file = open_features(digits)
    train, test = file["train"], file["test"]
    probe = RidgeClassifier(alpha=0.01)
    probe.fit(np.asarray(train.X, np.float64), train.y)
    assert probe.score(np.asarray(test.X, np.float64), test.y) > 0.95


def test_scattering_equals_kymatio_on_images(images, scatter, tmp_path):
    from kymatio.scattering2d.frontend.numpy_frontend import ScatteringNumPy2D
    from PIL import Image

    square = images / "train" / "cat" / "0.png"
    pixels = np.arange(256, dtype=np.uint8).reshape(16, 16)
    Image.fromarray(pixels).save(square)
    kwargs = ("--model-kwargs", "J=1", "L=4", "max_order=2")
    assert scatter(images, *kwargs, "--dtype", "float32")[0] == 0
    transform = ScatteringNumPy2D(J=1, L=4, max_order=2, shape=(16, 16))
    expected = transform((pixels / 255.0).astype(np.float32)).ravel()
    row = open_features(tmp_path / "out.h5")["train"].X[0]
    np.testing.assert_allclose(row, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--model-kwargs", "K=2"], "must be among ['J', 'L', 'max_order'], got 'K'"),
        (["--model-kwargs", "J=9"], "must fit images of 16 pixels"),
        (["--model-kwargs", "J=two"], "must fit images of 16 pixels"),
        (["--interpolation", "lanczos"], "--interpolation of scattering"),
    ],
)
def test_scattering_refuses_what_does_not_fit(images, scatter, given, message):
    status, _, err = scatter(images, *given)
    assert status == 1
    assert message in err
    assert err.count("\n") == 1


def test_scattering_without_kymatio_says_what_to_install(scatter, monkeypatch):
    name = "kymatio.scattering2d.frontend.numpy_frontend"
    monkeypatch.setitem(sys.modules, name, None)
    status, _, err = scatter("digits")
    assert status == 1
    assert "Run pip install 'privfeat[quickstart]'" in err
