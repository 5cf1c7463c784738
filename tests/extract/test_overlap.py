"""Near-duplicates between two feature files."""

import json
import pickle
import sys
import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, normalize

import privfeat
from privfeat import persistence
from privfeat.cli import main as privfeat_main
from privfeat.data import join_features, open_features, write_features
from privfeat.data.sharing import check_apart
from privfeat.exceptions import PrivacyError
from privfeat.metrics import private_evaluation
from privfeat_extract import similarity
from privfeat_extract.cli import main
from privfeat_extract.errors import say


@pytest.fixture
def files(tmp_path):
    """Two files of random rows; three rows of ``b`` are scaled copies from ``a``."""
    rng = np.random.default_rng(0)
    train, test, public = (rng.normal(size=(n, 16)) for n in (50, 20, 70))
    public[5], public[6], public[69] = 0.5 * train[7], train[7] + 1e-3, 2.0 * test[3]
    a, b = tmp_path / "a.h5", tmp_path / "b.h5"
    write_features(
        a,
        {name: labelled(rows) for name, rows in (("train", train), ("test", test))},
    )
    write_features(b, {"train": labelled(public)})
    return a, b


@pytest.fixture
def model(files):
    """A classifier of the rows of ``a``."""
    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    clf = privfeat.DPFC(epsilon=1.0, classes=range(2), n_iter=1, random_state=0)
    return clf.fit(open_features(files[0])["train"].X[:], np.arange(50) % 2)


def labelled(rows):
    return rows.astype(np.float32), np.zeros(len(rows), np.int64)


@pytest.mark.parametrize("block_rows", [1, 7, 4096])
def test_nearest_compares_all_pairs(files, block_rows, plant):
    plant("rows of a block", block_rows)
    with open_features(files[0]) as a, open_features(files[1]) as b:
        one, two = (np.vstack([np.asarray(s.X) for s in f.values()]) for f in (a, b))
        found_a, found_b = similarity.nearest(a, b)
    one, two = (rows / np.linalg.norm(rows, axis=1)[:, None] for rows in (one, two))
    for found, cosines in ((found_a, one @ two.T), (found_b, two @ one.T)):
        np.testing.assert_allclose(found.similarity, cosines.max(axis=1), atol=1e-6)
        rows = np.arange(len(cosines))
        np.testing.assert_allclose(
            cosines[rows, found.row], cosines.max(axis=1), atol=1e-6
        )


def test_overlap_prints_counts_and_pairs(run, files, tmp_path):
    status, out, err = run("overlap", *files, "--out", tmp_path / "pairs.json")
    assert status == 0
    assert "tell of the records" in err
    assert "a.h5: 2 of 70 rows have a near-duplicate" in out
    assert "b.h5: 3 of 70 rows have a near-duplicate" in out
    pairs = json.loads((tmp_path / "pairs.json").read_text())["pairs"]
    assert sorted((p["a"], p["b"]) for p in pairs) == [
        (["test", 3], ["train", 69]),
        (["train", 7], ["train", 5]),
    ]
    assert all(0.9999 < pair["similarity"] <= 1.0 for pair in pairs)


def test_remove_writes_the_rows_that_have_no_near_duplicate(run, files, tmp_path):
    clean = tmp_path / "clean.h5"
    status, out, err = run("overlap", *files, "--remove", clean)
    assert status == 0
    assert "clean.h5: 67 of 70 rows of " in out
    assert "without 3 near-duplicates" in out
    assert "which rows of B are missing tells" in err
    with open_features(files[1]) as b, open_features(clean) as kept:
        rows = np.delete(np.arange(70), [5, 6, 69])
        assert np.array_equal(kept["train"].X[:], b["train"].X[rows])
        assert np.array_equal(kept["train"].y, b["train"].y[rows])
        kept.verify()
        assert kept.metadata["feature_dtype"] == b.metadata["feature_dtype"]
    assert "clean.h5: 0 of 67 rows" in run("overlap", files[0], clean)[1]
    assert "must not exist" in run("overlap", *files, "--remove", clean)[2]


def test_remove_keeps_origin_splits_and_users(run, files, tmp_path):
    rng = np.random.default_rng(1)
    rows, names = rng.normal(size=(9, 16)).astype(np.float16), ["cat", "dog"]
    with open_features(files[0]) as a:
        rows[2], rows[4:] = a["train"].X[3], a["train"].X[:5]
    splits = {
        "train": (rows[:4], np.arange(4) % 2, np.arange(4)),
        "test": (rows[4:], np.zeros(5, int), np.zeros(5, int)),
    }
    b, clean = tmp_path / "c.h5", tmp_path / "clean.h5"
    about = {"class_names": names, "metadata": {"model": "m", "n": 3}}
    write_features(b, splits, dtype="float16", **about)
    assert run("overlap", files[0], b, "--threshold", 0.99, "--remove", clean)[0] == 0
    with open_features(clean) as kept:
        assert list(kept) == ["train"]
        assert kept["train"].groups.tolist() == [0, 1, 3]
        assert kept["train"].X.dtype == np.float16
        assert (kept.class_names, kept.origin["model"]) == (("cat", "dog"), "m")
    for path in (files[0], b):  # nothing would be left
        status, _, err = run("overlap", path, path, "--remove", tmp_path / "no.h5")
        assert (status, (tmp_path / "no.h5").exists()) == (1, False)
        assert "must hold a row that is no near-duplicate" in err


def test_remove_says_how_accuracy_changes(run, files, tmp_path):
    """By the nearest class mean, which scikit-learn computes as well."""
    rng, names, splits = np.random.default_rng(2), ["none", "cat", "dog"], []
    for n in (40, 30):
        y = rng.permutation(1 + np.arange(n) % 2)
        splits.append((rng.normal(size=(n, 16)) + y[:, None] - 1, y))
    splits[1][0][:12] = splits[0][0][:12]
    splits[1][1][:12] = 3 - splits[0][1][:12]  # the same images, named otherwise
    paths = [tmp_path / name for name in ("one.h5", "two.h5")]
    for path, split in zip(paths, splits, strict=True):
        write_features(path, {"train": split}, class_names=names)
    status, out, _ = run("overlap", *paths, "--remove", tmp_path / "clean.h5")
    (X, y), (X_b, y_b) = [(normalize(X), y) for X, y in splits]
    whole, clean = (
        100 * NearestCentroid().fit(X_b[kept:], y_b[kept:]).score(X, y)
        for kept in (0, 12)
    )
    assert status == 0
    assert clean - whole > 5
    assert f"{whole:.1f} % with all rows, {clean:.1f} % without near-dup" in out
    unnamed = run("overlap", *files, "--remove", tmp_path / "other.h5")[1]
    assert "accuracy: not compared, as some record has no class" in unnamed


def test_rows_that_records_chose_are_public_in_no_fit(run, files, tmp_path):
    clean = tmp_path / "clean.h5"
    assert run("overlap", *files, "--remove", clean)[0] == 0
    train = open_features(files[0])["train"].X
    chosen, whole = (open_features(path)["train"] for path in (clean, files[1]))
    for rows in (chosen, chosen.X, pickle.loads(pickle.dumps(chosen.X))):
        with pytest.raises(ValueError, match="public must not be chosen by"):
            check_apart(rows, train)
    check_apart(whole, train)
    # the same records in memory, or in another file, have no name of their own
    for same in (train[:], whole.X):
        with pytest.raises(ValueError, match="public must not be chosen by"):
            check_apart(chosen, same)


@pytest.mark.slow
def test_no_command_calls_rows_public_that_records_chose(
    run, files, tmp_path, capsys, model
):
    """Nor those of a file that joins them, beside records that a joined file holds."""
    clean, joined, more = (tmp_path / f"{n}.h5" for n in ("clean", "joined", "more"))
    assert run("overlap", *files, "--remove", clean)[0] == 0
    name = next(iter(open_features(clean)))
    rows = open_features(clean)[name].X[:]
    write_features(more, {name: (-rows, open_features(clean)[name].y)})
    join_features(joined, [more, clean])
    fitted = tmp_path / "fitted"
    persistence.save(model, fitted)
    private = f"{files[0]}:train"
    fit = f"fit --estimator DPFC --epsilon 1 --n-classes 2 --train {private} --out"
    report = f"report {fitted} --out {tmp_path / 'r.html'}"
    public = "--test-is-public"
    flow = f"workflow {tmp_path / 'all'} --n 100 --n-classes 2 --train {private}"
    for file in (clean, joined):
        for command in (
            f"{fit} {tmp_path / 'm'} --public {file}",
            f"{fit} {tmp_path / 'm'} --test {file} {public}",
            f"{flow} --test {file} {public}",
            f"{flow} --calibration {file}",
            f"{report} --test {file} {public}",
        ):
            assert privfeat_main(command.split()) != 0
            assert "must not be chosen by private records" in capsys.readouterr().err
    assert not (tmp_path / "all" / "model").exists()


def test_public_temperature_refuses_rows_that_records_chose(
    run, files, tmp_path, model
):
    clean = tmp_path / "clean.h5"
    assert run("overlap", *files, "--remove", clean)[0] == 0
    split = next(iter(open_features(clean).values()))
    scaled = privfeat.TemperatureScaling(model, public=True)
    with pytest.raises(ValueError, match="must not be chosen by private records"):
        scaled.fit(split.X, split.y)


def test_overlap_with_a_higher_threshold_finds_less(run, files):
    assert "b.h5: 3 of" in run("overlap", *files, "--threshold", 0.9)[1]
    assert "b.h5: 70 of" in run("overlap", *files, "--threshold", -1)[1]


def test_overlap_of_rows_of_zeros_is_none(run, files, tmp_path):
    zeros = tmp_path / "zeros.h5"
    with pytest.warns(UserWarning, match="all zeros"):
        write_features(zeros, {"train": labelled(np.zeros((3, 16)))})
    assert "zeros.h5: 0 of 3 rows" in run("overlap", zeros, files[0])[1]


def test_overlap_refuses_files_of_other_networks(run, files, tmp_path):
    other = tmp_path / "other.h5"
    write_features(other, {"train": labelled(np.ones((3, 17)))})
    status, out, err = run("overlap", files[0], other)
    assert (status, out) == (1, "")
    assert "both files must have the same n_features" in err


@pytest.mark.parametrize("threshold", ["1.1", "nan", "much"])
def test_overlap_refuses_a_threshold_that_is_no_cosine(run, files, threshold):
    assert run("overlap", *files, "--threshold", threshold)[0] == 2


def test_overlap_of_a_missing_file_is_one_line(run, files, tmp_path):
    status, _, err = run("overlap", files[0], tmp_path / "none.h5")
    assert status == 1
    assert "error: " in err
    assert "Traceback" not in err


def test_a_stderr_that_nobody_reads_ends_no_command(tmp_path, monkeypatch):
    """Hours of an extraction are worth more than a warning."""

    class Broken:
        def write(self, text):
            raise BrokenPipeError

        flush = write

    monkeypatch.setattr(sys, "stderr", Broken())
    say("warning: an image was skipped")
    assert main(["overlap", str(tmp_path / "a.h5"), str(tmp_path / "b.h5")]) == 1


def test_rows_that_other_records_chose_are_no_records_for_a_charge(
    run, files, tmp_path
):
    """One record of ``a`` decides whether all that are near to it are there."""
    clean = tmp_path / "clean.h5"
    assert (
        "with a ledger as its records" in run("overlap", *files, "--remove", clean)[2]
    )
    rows = open_features(clean)["train"]
    clf = privfeat.DPNearestMean(epsilon=1.0, classes=[0, 1])
    with pytest.warns(privfeat.PrivacyWarning, match="X lacks the near-duplicates"):
        clf.fit(rows.X, rows.y)
    ledger = privfeat.PrivacyLedger(
        tmp_path / "l", dataset="b", epsilon=9.0, delta=1e-5
    )
    charged = clone(clf).set_params(ledger=ledger)
    for fit in (
        charged.fit,
        make_pipeline(Normalizer(), charged).fit,
        partial(private_evaluation, clf, ledger=ledger, epsilon=1.0),
    ):
        with pytest.raises(PrivacyError, match="one of those moves many rows"):
            fit(rows.X, rows.y)
    assert not ledger.history
    # each row of b goes by itself where a is public
    apart = tmp_path / "apart.h5"
    told = run("overlap", *files, "--remove", apart, "--a-is-public")
    assert told[0] == 0
    assert "ledger" not in told[2]
    rows = open_features(apart)["train"]
    assert len(rows) == 67
    charged.fit(rows.X, rows.y)
    assert len(ledger.history) == 1
    last = tmp_path / "last.h5"  # of rows that were chosen themselves none is public
    assert run("overlap", clean, files[0], "--remove", last, "--a-is-public")[0] == 0
    assert open_features(last)["train"].X.chosen_by
