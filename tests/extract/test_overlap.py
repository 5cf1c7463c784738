"""Near-duplicates between two feature files."""

import json
import sys

import numpy as np
import pytest

from privfeat.data import open_features, write_features
from privfeat_extract import overlap
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


def labelled(rows):
    return rows.astype(np.float32), np.zeros(len(rows), np.int64)


@pytest.mark.parametrize("block_rows", [1, 7, 4096])
def test_nearest_compares_all_pairs(files, block_rows, plant):
    plant("rows of a block", block_rows)
    with open_features(files[0]) as a, open_features(files[1]) as b:
        one, two = (np.vstack([np.asarray(s.X) for s in f.values()]) for f in (a, b))
        found_a, found_b = overlap.nearest(a, b)
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
