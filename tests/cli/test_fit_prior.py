"""``privfeat fit --prior``: features of the names of the classes."""

import numpy as np
import pytest

from privfeat import DPFC, open_features, persistence
from privfeat.data import write_features

NAMES = ["lost", "arrival", "fee"]
FIT = "fit --estimator DPFC --epsilon 0.5 --delta 1e-6 --quiet --n-classes 3"
FIT = [*FIT.split(), "--set", "random_state=7"]


def rows(n, seed, centers):
    draw = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = centers[y] + 0.3 * draw.standard_normal((n, 8))
    return X.astype(np.float32), y


@pytest.fixture
def texts(tmp_path):
    """Return a feature file as extraction writes it of texts: train, test, classes."""
    centers = np.linalg.qr(np.random.default_rng(0).standard_normal((8, 3)))[0].T
    splits = {"train": rows(90, 1, centers), "test": rows(60, 2, centers)}
    splits["classes"] = centers.astype(np.float32), np.arange(3)
    path = tmp_path / "texts.h5"
    write_features(path, splits, class_names=NAMES)
    return path


def test_prior_is_the_split_of_the_classes(run, texts, tmp_path):
    argv = (*FIT, "--train", texts, "--out", tmp_path / "m", "--prior", texts)
    assert run(*argv)[0] == 0
    model = persistence.load(tmp_path / "m")
    names = open_features(texts)["classes"].X[:]
    np.testing.assert_array_equal(model.prior, names)
    assert "that the prior was made without the records" in model.privacy_.public


@pytest.mark.filterwarnings("ignore:random_state makes the noise reproducible")
def test_prior_of_the_command_is_that_of_python(run, texts, tmp_path):
    argv = (*FIT, "--train", texts, "--out", tmp_path / "m", "--prior", texts)
    assert run(*argv)[0] == 0
    file = open_features(texts)
    train, prior = file["train"], file["classes"].X[:]
    clf = DPFC(
        epsilon=0.5, delta=1e-6, classes=range(3), prior=prior, random_state=7
    ).fit(train.X, train.y)
    loaded = persistence.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.coef_, clf.coef_)
    persistence.save(clf, tmp_path / "n")
    np.testing.assert_array_equal(persistence.load(tmp_path / "n").prior, prior)


def test_prior_may_lie_in_another_file(run, texts, tmp_path):
    file = open_features(texts)
    other = tmp_path / "names.h5"
    write_features(
        other,
        {"words": (file["classes"].X[:] * 2, np.arange(3))},
        class_names=NAMES,
    )
    argv = (*FIT, "--train", texts, "--out", tmp_path / "m", "--prior", other)
    assert run(*argv)[0] == 0


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (NAMES, [0, 1, 1]),
        (NAMES, [2, 1, 0]),
        (NAMES, [0, 1]),
        (["lost", "fee", "arrival"], [0, 1, 2]),
        (None, [0, 1, 2]),
    ],
)
def test_prior_has_one_row_for_each_class(fails, texts, tmp_path, names, labels):
    other = tmp_path / "names.h5"
    found = np.eye(8, dtype=np.float32)[: len(labels)], np.array(labels)
    write_features(other, {"classes": found}, class_names=names)
    argv = (*FIT, "--train", texts, "--out", tmp_path / "m", "--prior", other)
    assert "--prior must have one row for each class of" in fails(*argv)
    assert not (tmp_path / "m").exists()


def test_prior_is_not_made_of_the_records(fails, texts, tmp_path):
    argv = (*FIT, "--train", texts, "--out", tmp_path / "m")
    assert "must not be the training split" in fails(*argv, "--prior", f"{texts}:train")
    assert "one row for each class" in fails(*argv, "--prior", f"{texts}:test")
