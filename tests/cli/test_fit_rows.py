"""Rows that a fit is given: of several labels, of users, and those of the test."""

from pathlib import Path

import numpy as np
import pytest

from privfeat import open_features, persistence
from privfeat.data import FeatureWriter, join_features, write_features
from tests.cli.tiny import CLASS_NAMES, fit_arguments, make_split


@pytest.fixture
def multilabel(tmp_path):
    """Return the path of a file whose rows carry two labels of four, or one."""
    path = tmp_path / "multi.h5"
    splits = {}
    for name, seed in [("train", 0), ("test", 1)]:
        X, y = make_split(240, seed)
        indicators = np.eye(4, dtype=np.uint8)[y] | np.eye(4, dtype=np.uint8)[y // 2]
        splits[name] = (X, indicators)
    write_features(path, splits, class_names=CLASS_NAMES)
    return path


def test_fit_and_predict_take_several_labels_a_row(run, multilabel, tmp_path):
    # scores of centred rows without an intercept are too small to be above one half
    options = (
        "--max-labels",
        2,
        "--set",
        "center=false",
        "--test",
        multilabel,
        "--test-is-public",
    )
    status, out, _ = run(*fit_arguments(multilabel, tmp_path / "m", *options))
    assert status == 0
    assert "(rows with all labels right)" in out
    loaded = persistence.load(tmp_path / "m")
    assert loaded.multilabel_ is True
    test = open_features(multilabel)["test"]
    assert loaded.score(test.X, test.y) > 0.9
    arguments = ("--features", multilabel, "--out", tmp_path / "p.csv")
    assert run("predict", "--model", tmp_path / "m", *arguments)[0] == 0
    lines = (tmp_path / "p.csv").read_text().splitlines()
    assert lines[0] == "row,ant,bee,cat,dog"
    first = loaded.predict(test.X)[0]
    assert lines[1] == ",".join(map(str, [0, *first]))


def test_fit_asks_for_the_number_of_labels(run, fails, tmp_path):
    X, y = make_split(60, 0)
    indicators = np.eye(4, dtype=np.uint8)[y]
    path = tmp_path / "bare.h5"
    write_features(path, {"train": (X, indicators), "test": make_split(60, 1)})
    assert "Pass --n-classes" in fails(*fit_arguments(path, tmp_path / "m"))
    right = fit_arguments(path, tmp_path / "m", "--n-classes", "4")
    assert run(*right)[0] == 0
    assert persistence.load(tmp_path / "m").classes_.tolist() == [0, 1, 2, 3]
    wrong = fit_arguments(path, tmp_path / "n", "--n-classes", "5")
    assert "must have labels of 5 columns" in fails(*wrong)
    options = ("--test", f"{path}:test", "--test-is-public", "--n-classes", "4")
    other = fit_arguments(path, tmp_path / "n", *options)
    assert "must have labels as" in fails(*other)


def test_fit_refuses_the_training_split_as_test(fails, features, tmp_path):
    """An exact accuracy on training records would be printed otherwise."""
    split = f"{features}:train"
    argv = [
        "fit",
        "--estimator",
        "DPFC",
        "--train",
        split,
        "--test",
        split,
        "--test-is-public",
    ]
    assert "training split" in fails(*argv, "--out", tmp_path / "model")


def test_fit_takes_public_rows_and_not_those_it_protects(run, fails, tmp_path):
    private, public = tmp_path / "private.h5", tmp_path / "public.h5"
    write_features(private, {"train": make_split(60, 0)}, class_names=CLASS_NAMES)
    write_features(public, {"public": make_split(30, 1), "test": make_split(9, 2)})
    argv = fit_arguments(private, tmp_path / "m", "--public", public)
    status, out, _ = run(*argv)
    assert status == 0
    assert "the 30 public rows, which the guarantee does not cover" in " ".join(
        out.split()
    )
    argv = fit_arguments(private, tmp_path / "n", "--public", private)
    assert "--public must not be the training split" in fails(*argv)


@pytest.mark.parametrize("kind", ["symlink", "hard link", "copy", "other split"])
def test_fit_knows_the_training_split_by_other_names(fails, features, tmp_path, kind):
    other = tmp_path / "other.h5"
    if kind == "symlink":
        other.symlink_to(features)
    elif kind == "hard link":
        other.hardlink_to(features)
    elif kind == "copy":
        other.write_bytes(Path(features).read_bytes())
    else:
        write_features(other, {"test": make_split(240, 0)}, class_names=CLASS_NAMES)
    split = f"{other}:{'test' if kind == 'other split' else 'train'}"
    argv = [
        "fit",
        "--estimator",
        "DPFC",
        "--train",
        features,
        "--test",
        split,
        "--test-is-public",
    ]
    assert "training split" in fails(*argv, "--out", tmp_path / "model")


@pytest.mark.parametrize(
    ("train", "test"),
    [("ab", "a"), ("a", "ab"), ("ab", "ba"), ("ab", "bc"), ("ab", "c")],
)
def test_fit_knows_shards_of_the_training_split(run, tmp_path, train, test):
    """A file joined of some of them holds training records as well."""
    for seed, name in enumerate("abc"):
        path, split = tmp_path / f"{name}.h5", {"train": make_split(80, seed)}
        write_features(path, split, class_names=CLASS_NAMES)
    for joined in ("ab", "ba", "bc"):
        shards = [tmp_path / f"{name}.h5" for name in joined]
        join_features(tmp_path / f"{joined}.h5", shards)
    files = (f"--train={tmp_path / train}.h5", f"--test={tmp_path / test}.h5")
    files += ("--test-is-public",)
    out = tmp_path / "model"
    status, _, err = run("fit", "--estimator=DPLeastSquares", *files, f"--out={out}")
    assert (status == 0) == set(train).isdisjoint(test)
    assert out.exists() == (status == 0)
    assert status == 0 or "share a shard" in err


@pytest.mark.parametrize(
    ("changed", "refused"), [({}, True), ({"dataset": "y"}, False)]
)
def test_fit_knows_other_features_of_the_training_images(
    run, tmp_path, changed, refused
):
    """Of another type or view their checksums differ, and their names do not."""
    paths = [tmp_path / "one.h5", tmp_path / "two.h5"]
    for seed, path in enumerate(paths):
        with FeatureWriter(path, n_features=5) as writer:
            writer.append("train", *make_split(80, seed))
            known = {"dataset": "x"} | (changed if seed else {})
            listed = {"train": {"file_list_sha256": "f"}}
            writer.finish(known, class_names=CLASS_NAMES, split_metadata=listed)
    files = (
        f"--train={paths[0]}",
        f"--test={paths[1]}",
        "--test-is-public",
        f"--out={tmp_path / 'm'}",
    )
    status, _, err = run("fit", "--estimator=DPLeastSquares", *files)
    assert (status != 0) == ("be made of the same images" in err) == refused


@pytest.fixture
def grouped(tmp_path):
    """Return the path of a file with four rows of each user."""
    X, y = make_split(240, 0)
    write_features(
        tmp_path / "users.h5",
        {"train": (X, y, np.arange(240) // 4)},
        class_names=CLASS_NAMES,
    )
    return tmp_path / "users.h5"


@pytest.mark.parametrize(
    "size", [("--max-group-size", 3), ("--set", "max_group_size=3")]
)
def test_fit_protects_users(run, grouped, tmp_path, size):
    options = ("--groups", *size, "--set", "user_bound=count")
    status, out, _ = run(*fit_arguments(grouped, tmp_path / "m", *options))
    assert status == 0
    assert "unit: user" in out
    loaded = persistence.load(tmp_path / "m")
    assert loaded.privacy_.unit == "user"
    assert loaded.max_group_size == 3
    assert loaded.user_bound == "count"


def test_fit_refuses_groups_without_a_bound_or_a_column(
    fails, features, grouped, tmp_path
):
    message = fails(*fit_arguments(grouped, tmp_path / "m", "--groups"))
    assert "--groups must be given together with --max-group-size" in message
    options = ("--no-groups", "--max-group-size", "3")
    message = fails(*fit_arguments(grouped, tmp_path / "m", *options))
    assert "groups must be given" in message
    options = ("--groups", "--max-group-size", "3")
    assert "must hold groups" in fails(*fit_arguments(features, tmp_path, *options))


def test_fit_reports_classes_of_one_split_alone(run, tmp_path):
    rows = np.ones((40, 3))
    path = tmp_path / "gaps.h5"
    splits = {"train": (rows, np.arange(40) % 2), "test": (rows[2:5], [0, 1, 2])}
    write_features(path, splits, class_names=["ant", "bee", "cat"])
    argv = ("fit", "--estimator", "DPLeastSquares", "--seed", 0, "--quiet")
    paths = (
        "--train",
        path,
        "--test",
        path,
        "--test-is-public",
        "--out",
        tmp_path / "model",
    )
    status, _, err = run(*argv, *paths)
    assert status == 0
    assert f"--train {path} has no row of class 'cat', --test {path} has one." in err


@pytest.mark.usefixtures("fit_is_forbidden")
def test_fit_never_ignores_groups_silently(fails, grouped, tmp_path):
    message = fails(*fit_arguments(grouped, tmp_path / "m"))
    assert "--no-groups to protect each row on its own" in message
    assert not (tmp_path / "m").exists()


def test_fit_protects_rows_of_a_grouped_file_if_asked(run, grouped, tmp_path):
    status, out, err = run(*fit_arguments(grouped, tmp_path / "m", "--no-groups"))
    assert status == 0
    assert "warning" not in err
    assert "unit: record" in out
