import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from privfeat import PrivacyLedger
from privfeat.data import FeatureFileError, open_features
from tests.extract.sharing import DYING, one_batch_of

# Runs the command and kills itself with SIGKILL after so many batches, all of which
# reached the disk; the fixture gives the other limits.
CHILD = f"""{DYING}
import resource, sys
from privfeat_extract.cli import main

batches, file_limit = int(sys.argv[1]), int(sys.argv[2])
if file_limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))
if batches:
    die_after(batches)
sys.exit(main(sys.argv[3:]))
"""

needs_posix = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX")


@pytest.fixture
def child(tmp_path):
    """Return a function that runs the command in a process with limits."""

    def run_child(*argv, kill_after=0, file_limit=0):
        command = [sys.executable, "-c", CHILD, str(kill_after), str(file_limit)]
        out = ("--quiet", "--out", tmp_path / "out.h5")
        return subprocess.run(
            [*command, *map(str, (*argv, *out))],
            capture_output=True,
            text=True,
            check=False,
        )

    return run_child


DIGITS = ("--data", "digits", "--model", "scattering")


def whole_digits(run, tmp_path):
    """Return the bytes of an extraction that was not interrupted."""
    path = tmp_path / "whole.h5"
    assert run(*DIGITS, "--quiet", "--out", path)[0] == 0
    data = path.read_bytes()
    path.unlink()
    return data


@pytest.mark.slow
@needs_posix
def test_extract_continues_after_a_kill(run, child, tmp_path):
    expected = whole_digits(run, tmp_path)
    killed = child(*DIGITS, kill_after=25)  # of 29 batches, in the second split
    assert killed.returncode == -signal.SIGKILL
    out = tmp_path / "out.h5"
    with pytest.raises(FeatureFileError, match="extraction is unfinished"):
        open_features(out)
    status, _, err = run(*DIGITS, "--quiet", "--out", out)
    assert status == 0
    assert "continuing after 1566 rows" in err
    assert out.read_bytes() == expected
    assert [path.name for path in tmp_path.iterdir()] == ["out.h5"]


@pytest.mark.slow
@needs_posix
def test_extract_with_a_network_continues_after_a_kill(
    images, network, child, tmp_path
):
    assert network(images)[0] == 0
    out = tmp_path / "out.h5"
    expected = out.read_bytes()
    out.unlink()
    argv = ("--data", images, "--model", "test_resnet", "--no-pretrained", "--resize")
    sizes = (40, "--crop", 32, "--batch-size", 4, "--dtype", "float32", "--workers", 2)
    killed = child(*argv, *sizes, kill_after=2)
    assert killed.returncode == -signal.SIGKILL
    status, _, err = network(images)
    assert status == 0
    assert "continuing after 8 rows" in err
    assert out.read_bytes() == expected


@pytest.mark.slow
@needs_posix
def test_extract_refuses_to_continue_with_other_arguments(run, child, tmp_path):
    child(*DIGITS, kill_after=3)
    out = tmp_path / "out.h5"
    status, _, err = run(*DIGITS, "--crop", 8, "--quiet", "--out", out)
    assert status == 1
    assert "crop was 16 and is 8" in err
    assert "overwrite" in err
    assert not out.exists()
    assert run(*DIGITS, "--crop", 8, "--overwrite", "--quiet", "--out", out)[0] == 0


@pytest.mark.slow
@needs_posix
@pytest.mark.parametrize(
    ("limit", "stage"),
    [
        (300_000, "out.h5.partial could"),
        pytest.param(900_000, "out.h5 could", marks=pytest.mark.slow),
    ],
)
def test_extract_on_a_full_disk_is_one_line_and_can_continue(
    run, child, tmp_path, limit, stage
):
    """Rows take 782 and 195 kB; the limit strikes in the rows or in the final file."""
    expected = whole_digits(run, tmp_path)
    full = child(*DIGITS, file_limit=limit)
    assert full.returncode == 1
    assert full.stderr.startswith("privfeat-extract: error: ")
    assert stage in full.stderr
    assert "could not be written" in full.stderr
    assert full.stderr.count("\n") == 1
    out = tmp_path / "out.h5"
    assert not out.exists()
    assert run(*DIGITS, "--quiet", "--out", out)[0] == 0
    assert out.read_bytes() == expected


def test_extract_stops_at_a_bad_image_and_names_it(images, scatter, tmp_path):
    bad = images / "train" / "dog" / "1.png"
    whole = bad.read_bytes()
    bad.write_bytes(whole[: len(whole) // 2])
    status, _, err = scatter(images)
    assert status == 1
    assert "image train/dog/1.png of split 'train' cannot be decoded" in err
    assert err.count("\n") == 1
    assert not (tmp_path / "out.h5").exists()
    bad.write_bytes(whole)
    status, _, err = scatter(images)
    assert status == 0
    assert "continuing after 6 rows" in err


@pytest.mark.parametrize("kind", ["scatter", "network"])
def test_extract_skips_bad_images_and_keeps_rows_aligned(
    images, tmp_path, kind, request
):
    extract = request.getfixturevalue(kind)
    assert extract(images)[0] == 0
    out = tmp_path / "out.h5"
    whole = open_features(out)["train"].X[:]
    (images / "train" / "cat" / "0.png").write_bytes(b"")
    (images / "train" / "dog" / "2.png").write_text("no image")
    status, _, err = extract(images, "--skip-bad", "--overwrite")
    assert status == 0
    assert "skipped train/cat/0.png: " in err
    assert "skipped train/dog/2.png: " in err
    train = open_features(out)["train"]
    np.testing.assert_allclose(train.X[:], np.delete(whole, [0, 7], axis=0), rtol=1e-4)
    np.testing.assert_array_equal(train.y, [0] * 4 + [1] * 4)
    assert train.metadata["n_skipped"] == 2
    assert b"cat/0.png" not in out.read_bytes()


def test_extract_of_bad_images_alone_leaves_nothing(images, scatter, tmp_path):
    for path in images.glob("train/*/*.png"):
        path.write_bytes(b"")
    status, _, err = scatter(images, "--skip-bad")
    assert status == 1
    assert "must hold an image that can be decoded" in err
    assert not list(tmp_path.glob("out*"))


def test_extract_keeps_an_existing_file(images, scatter, tmp_path):
    out = tmp_path / "out.h5"
    out.write_text("mine")
    status, _, err = scatter(images)
    assert status == 1
    assert "--out must not exist yet" in err
    assert out.read_text() == "mine"


def test_extract_replaces_no_ledger(images, scatter, tmp_path):
    """Said before the work, in a line."""
    out = tmp_path / "out.h5"
    PrivacyLedger(out, dataset="d", epsilon=1.0, delta=1e-5)
    before = out.read_bytes()
    status, _, err = scatter(images, "--overwrite")
    assert status == 1
    assert "must not be replaced: it is a ledger" in err
    assert out.read_bytes() == before
    assert not (tmp_path / "out.h5.partial").exists()


def test_extract_resume_accepts_a_complete_file(images, scatter):
    assert scatter(images)[0] == 0
    status, out, _ = scatter(images, "--resume")
    assert status == 0
    assert "already complete, 14 rows" in out
    status, _, err = scatter(images, "--resume", "--model-kwargs", "L=4")
    assert status == 1
    assert "was made with others" in err


@pytest.mark.parametrize("place", ["images", "images/train/cat"])
def test_extract_refuses_names_that_no_file_holds(images, scatter, tmp_path, place):
    """Before the work: h5py refused them after the last image."""
    odd = (tmp_path / place).with_name(os.fsdecode(b"caf\xe9"))
    (tmp_path / place).rename(odd)
    status, _, printed = scatter(odd if place == "images" else images)
    assert status == 1
    assert "must be text in UTF-8, got 'caf\\udce9'" in printed
    assert not (tmp_path / "out.h5.partial").exists()


def test_extract_takes_the_splits_asked_for(images, scatter, tmp_path):
    assert scatter(images, "--splits", "test")[0] == 0
    assert set(open_features(tmp_path / "out.h5")) == {"test"}


def test_extract_shows_progress_and_speed(images, run, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    argv = ("--data", images, "--model", "scattering", "--out", tmp_path / "a.h5")
    status, out, err = run(*argv)
    assert status == 0
    assert "100%" in err
    assert "images/s" in err
    assert "14 rows" in out
    assert "images/s" in out


def test_extract_writes_no_bar_into_a_log(images, run, tmp_path):
    argv = ("--data", images, "--model", "scattering", "--out", tmp_path / "a.h5")
    assert run(*argv)[2] == ""  # in less than a minute


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("nowhere", "--data must be a folder, an archive, 'digits'"),
        ("empty", "must hold images, but"),
    ],
)
def test_extract_of_missing_data_is_one_line(scatter, tmp_path, data, message):
    (tmp_path / "empty").mkdir()
    status, _, err = scatter(tmp_path / data)
    assert status == 1
    assert message in err
    assert err.count("\n") == 1
    assert not list(tmp_path.glob("out*"))


def test_extract_into_a_missing_folder_is_one_line(run, tmp_path):
    status, _, err = run(*DIGITS, "--out", tmp_path / "none" / "a.h5")
    assert status == 1
    assert "--out must lie in an existing folder" in err


def test_extract_interrupted_by_the_user_can_continue(images, scatter, tmp_path, plant):
    with plant.context() as patched:
        patched("batches of scattering", one_batch_of(plant))
        status, _, err = scatter(images)
    assert status == 130
    assert "run the same command again to continue" in err
    status, _, err = scatter(images)
    assert status == 0
    assert "continuing after 2 rows" in err


def test_what_extraction_keeps_among_the_images_is_no_class(images, scatter, tmp_path):
    """It would be one in a run that goes on, and not in a run that was not stopped."""
    out = tmp_path / "images" / "train" / "a.h5"
    (out.with_name("a.h5.partial") / "kept").mkdir(parents=True)
    status, _, err = scatter(images / "train", "--out", out)
    assert status == 0, err
    assert open_features(out).class_names == ("cat", "dog")


@pytest.mark.parametrize("folder", ["kept", "/"])
def test_a_folder_is_no_file_to_write(folder, images, scatter, tmp_path):
    """It was found when all features were there, or by a traceback."""
    (tmp_path / "kept").mkdir()
    status, _, err = scatter(images, "--overwrite", "--out", str(tmp_path / folder))
    assert status == 1
    assert "--out must be a file" in err
