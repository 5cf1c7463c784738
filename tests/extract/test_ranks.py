import os
import shutil
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from privfeat.data import FeatureFileError, open_features
from privfeat_extract.errors import ExtractError
from privfeat_extract.ranks import Rank, read_rank
from tests.extract.sharing import DYING, assert_same, names

# Runs the command in a process of its own. It kills itself with SIGKILL after so many
# batches, all on disk; or, before it joins, waits until the other has come as far.
CHILD = f"""{DYING}
import sys, time
from pathlib import Path
from privfeat_extract import run
from privfeat_extract.cli import main

batches, meeting = int(sys.argv[1]), sys.argv[2]
if batches:
    die_after(batches)
if meeting:
    join = run.join_shards
    def meet_and_join(out, rank, *args):
        Path(meeting, str(rank.number)).touch()
        while len(os.listdir(meeting)) < rank.count:
            time.sleep(0.001)
        return join(out, rank, *args)
    run.join_shards = meet_and_join
sys.exit(main(sys.argv[3:]))
"""

SIZES = ("--resize", "16", "--crop", "16", "--batch-size", "2", "--quiet")

needs_posix = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX")


@pytest.fixture
def start(images, tmp_path):
    """Return a function that starts one of ``count`` processes."""

    def start_rank(number, *argv, count=2, kill_after=0, meeting="", data=images):
        command = [sys.executable, "-c", CHILD, str(kill_after), str(meeting)]
        what = ("--data", data, "--model", "scattering", "--out", tmp_path / "out.h5")
        return subprocess.Popen(
            [*command, *map(str, (*what, *SIZES, *argv))],
            env={**os.environ, "RANK": str(number), "WORLD_SIZE": str(count)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start_rank


def finish(process):
    out, err = process.communicate(timeout=900)
    return process.returncode, out, err


@pytest.mark.slow
@needs_posix
def test_two_processes_that_finish_at_once_give_the_file_of_one(
    start, single, tmp_path
):
    (tmp_path / "meeting").mkdir()
    both = [start(i, meeting=tmp_path / "meeting") for i in (0, 1)]
    for status, out, err in map(finish, both):
        assert (status, err) == (0, "")
        assert "joined 2 shards into" in out
    assert_same(tmp_path / "out.h5", single)
    shards = tmp_path / "out.h5.shards"
    assert names(shards) == ["00001-of-00002.h5", "00002-of-00002.h5"]
    assert sorted(path.name for path in tmp_path.glob("*out*")) == [
        "out.h5",
        "out.h5.shards",
    ]


@pytest.mark.slow
@needs_posix
def test_a_killed_process_resumes_alone(start, single, tmp_path):
    killed, other = start(1, kill_after=2), start(0)
    assert finish(killed)[0] == -signal.SIGKILL
    status, out, _ = finish(other)
    assert status == 0
    assert "1 of 2 shards to come, first 00002-of-00002.h5" in out
    with pytest.raises(FeatureFileError, match="extraction is unfinished"):
        open_features(tmp_path / "out.h5")
    status, out, err = finish(start(1))
    assert status == 0
    assert "continuing after 4 rows" in err
    assert "joined 2 shards" in out
    assert_same(tmp_path / "out.h5", single)


@pytest.mark.slow
def test_torchrun_starts_and_restarts_the_command(images, single, tmp_path):
    torchrun = Path(sys.executable).with_name("torchrun")
    if not torchrun.exists():
        pytest.skip("needs torchrun")
    what = ("--data", images, "--model", "scattering", "--out", tmp_path / "out.h5")
    command = [torchrun, "--nproc-per-node", "2", "-m", "privfeat_extract", *what]
    for outcome in ("joined 2 shards", "already complete, 14 rows"):
        done = subprocess.run(
            [*map(str, command), *SIZES],
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
        assert done.returncode == 0, done.stderr
        assert outcome in done.stdout
    assert_same(tmp_path / "out.h5", single)


@pytest.mark.slow
@pytest.mark.parametrize("count", [3, 7])
def test_processes_one_after_the_other_give_the_file_of_one(
    images, scatter_as, single, tmp_path, count
):
    """There are 10 and 4 images: of 7 shards, 3 have none of the second split."""
    for number in reversed(range(count)):
        status, out, _ = scatter_as(number, count, images)
        assert status == 0
        assert ("joined" in out) == (number == 0)
    assert_same(tmp_path / "out.h5", single)


def test_processes_with_a_network_share_the_images(
    images, network, tmp_path, monkeypatch
):
    assert network(images)[0] == 0
    single = open_features(shutil.move(tmp_path / "out.h5", tmp_path / "single.h5"))
    monkeypatch.setenv("WORLD_SIZE", "2")
    for number in (0, 1):
        monkeypatch.setenv("RANK", str(number))
        assert network(images)[0] == 0
    for name, split in open_features(tmp_path / "out.h5").items():
        np.testing.assert_allclose(split.X[:], single[name].X[:], rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(split.y, single[name].y)


def test_processes_skip_bad_images(images, scatter, scatter_as, tmp_path):
    for name in ("cat/0", "cat/1"):  # all test images of the first process
        (images / "test" / f"{name}.png").write_bytes(b"")
    assert scatter(images, "--skip-bad")[0] == 0
    single = open_features(shutil.move(tmp_path / "out.h5", tmp_path / "single.h5"))
    for number in (0, 1):
        assert scatter_as(number, 2, images, "--skip-bad")[0] == 0
    assert_same(tmp_path / "out.h5", single)
    assert open_features(tmp_path / "out.h5")["test"].metadata["n_skipped"] == 2


def test_processes_without_any_image_of_a_split_are_refused(
    images, scatter_as, tmp_path
):
    for path in images.glob("test/*/*.png"):
        path.write_bytes(b"")
    assert scatter_as(0, 2, images, "--skip-bad")[0] == 0
    status, _, err = scatter_as(1, 2, images, "--skip-bad")
    assert status == 1
    assert "split 'test' must hold an image that can be decoded" in err
    assert not (tmp_path / "out.h5").exists()


def test_processes_limit_the_whole_split(images, scatter_as, tmp_path):
    for number in (0, 1):
        assert scatter_as(number, 2, images, "--limit", 3)[0] == 0
    file = open_features(tmp_path / "out.h5")
    assert {name: len(split) for name, split in file.items()} == {"train": 3, "test": 3}


def test_processes_share_an_archive_that_is_unpacked_once(
    images, scatter_as, single, tmp_path
):
    archive = shutil.make_archive(str(tmp_path / "images"), "gztar", images)
    assert scatter_as(0, 2, archive)[0] == 0
    unpacked = list((tmp_path / "out.h5.shards").glob("source-*.tar"))
    assert len(unpacked) == 1
    before = unpacked[0].stat().st_mtime_ns
    os.utime(unpacked[0], ns=(before - 10**9, before - 10**9))
    assert scatter_as(1, 2, archive)[0] == 0
    found = open_features(tmp_path / "out.h5")["train"].X[:]
    np.testing.assert_array_equal(found, single["train"].X[:])
    assert names(tmp_path / "out.h5.shards") == [
        "00001-of-00002.h5",
        "00002-of-00002.h5",
    ]


@pytest.mark.parametrize("total", [0, 1, 4, 10, 1797])
@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_shares_follow_one_another(total, count):
    ends = [Rank(number, count).share(total) for number in range(count)]
    assert ends[0][0] == 0
    assert ends[-1][1] == total
    assert all(a[1] == b[0] for a, b in pairwise(ends))
    lengths = [stop - first for first, stop in ends]
    assert max(lengths) - min(lengths) <= 1


def test_read_rank_takes_what_torchrun_sets():
    environ = {"RANK": "5", "WORLD_SIZE": "8"}
    assert read_rank({}) == Rank()
    assert read_rank({"RANK": "0", "WORLD_SIZE": "1"}).alone
    assert read_rank(environ) == Rank(5, 8, 5, 1)
    environ |= {"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"}
    assert read_rank(environ) == Rank(5, 8, 1, 4)


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"RANK": "0"}, "WORLD_SIZE must be a whole number"),
        ({"WORLD_SIZE": "2"}, "RANK must be a whole number"),
        ({"RANK": "2", "WORLD_SIZE": "2"}, r"RANK must be a whole number in \[0, 1\]"),
        ({"RANK": "-1", "WORLD_SIZE": "2"}, "RANK must be"),
        ({"RANK": "x", "WORLD_SIZE": "2"}, "RANK must be"),
        ({"RANK": "0", "WORLD_SIZE": "0"}, "WORLD_SIZE must be"),
        ({"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "a"}, "LOCAL_RANK must be"),
    ],
)
def test_read_rank_refuses_what_makes_no_sense(environ, message):
    with pytest.raises(ExtractError, match=message):
        read_rank(environ)
