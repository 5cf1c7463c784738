import os
import shutil
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import h5py
import numpy as np
import pytest

from privfeat.data import FeatureFileError, open_features
from privfeat_extract.errors import ExtractError
from privfeat_extract.ranks import Rank, read_rank

# Runs the command in a process of its own. It kills itself with SIGKILL after so many
# batches, all on disk; or, before it joins, waits until the other has come as far.
CHILD = """
import os, signal, sys, time
from functools import partialmethod
from pathlib import Path
from privfeat.data import FeatureWriter
from privfeat_extract import run
from privfeat_extract.cli import main

batches, meeting = int(sys.argv[1]), sys.argv[2]
if batches:
    FeatureWriter.__init__ = partialmethod(FeatureWriter.__init__, flush_seconds=0.0)
    append = FeatureWriter.append
    def append_and_die(self, *args, **kwargs):
        global batches
        append(self, *args, **kwargs)
        batches -= 1
        if not batches:
            os.kill(os.getpid(), signal.SIGKILL)
    FeatureWriter.append = append_and_die
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


@pytest.fixture
def scatter_as(scatter, monkeypatch):
    """Return a function that runs the command in this process, under a rank."""

    def run_as(number, count, data, *argv):
        monkeypatch.setenv("RANK", str(number))
        monkeypatch.setenv("WORLD_SIZE", str(count))
        status = scatter(data, *argv)
        monkeypatch.delenv("RANK")
        monkeypatch.delenv("WORLD_SIZE")
        return status

    return run_as


@pytest.fixture
def single(images, scatter, tmp_path):
    """Return the file that one process writes."""
    assert scatter(images)[0] == 0
    return open_features(shutil.move(tmp_path / "out.h5", tmp_path / "single.h5"))


def assert_same(path, single):
    """Rows, labels and attributes are those of the single process."""
    with open_features(path) as file:
        file.verify()
        assert file.class_names == single.class_names
        rest = dict(file.metadata)
        assert rest.pop("shards")
        assert rest == single.metadata
        assert set(file) == set(single)
        for name, split in single.items():
            np.testing.assert_array_equal(file[name].X[:], split.X[:])
            np.testing.assert_array_equal(file[name].y, split.y)
            stored = file[name].metadata
            assert stored["file_list_sha256"] == split.metadata["file_list_sha256"]
            assert stored["n_skipped"] == split.metadata["n_skipped"]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


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


@pytest.fixture
def joined(images, scatter_as, tmp_path):
    for number in (0, 1):
        assert scatter_as(number, 2, images)[0] == 0
    return tmp_path / "out.h5"


@pytest.fixture
def shards(joined):
    return sorted((joined.parent / "out.h5.shards").iterdir())


def test_a_process_that_is_started_again_does_nothing(images, joined, scatter_as):
    before = joined.stat().st_mtime_ns
    status, out, _ = scatter_as(0, 2, images)
    assert status == 0
    assert "already complete, 14 rows" in out
    assert joined.stat().st_mtime_ns == before


def test_a_lost_shard_is_made_again(images, single, joined, shards, scatter_as):
    shards[0].unlink()
    shards[1].with_name(shards[1].name + ".partial").mkdir()  # killed at the very end
    with pytest.raises(FeatureFileError, match="but there is no such file"):
        open_features(joined)
    assert scatter_as(1, 2, images)[0] == 0  # has its shard, and waits
    assert names(shards[1].parent) == [shards[1].name]
    assert scatter_as(0, 2, images)[0] == 0
    assert_same(joined, single)


def test_a_process_refuses_shards_of_other_arguments(
    images, joined, shards, scatter_as
):
    before = joined.read_bytes(), shards[0].read_bytes()
    status, _, err = scatter_as(0, 2, images, "--model-kwargs", "L=4")
    assert status == 1
    assert "was made with others" in err
    joined.unlink()
    status, _, err = scatter_as(0, 2, images, "--model-kwargs", "L=4")
    assert status == 1
    assert "00001-of-00002.h5 must be of these arguments" in err
    assert shards[0].read_bytes() == before[1]


def test_overwrite_replaces_the_shards_one_by_one(images, joined, scatter_as):
    """The joined file is refused in between, since one of its shards was replaced."""
    options = ("--model-kwargs", "L=4", "--overwrite")
    status, out, _ = scatter_as(0, 2, images, *options)
    assert status == 0
    assert "1 of 2 shards to come" in out
    with pytest.raises(FeatureFileError, match="but was replaced"):
        open_features(joined)
    assert scatter_as(1, 2, images, *options)[0] == 0
    assert open_features(joined).metadata["model_kwargs"]["L"] == 4


def test_a_joined_file_refuses_a_truncated_shard(joined, shards, scatter_as, images):
    shards[1].write_bytes(shards[1].read_bytes()[:-1])
    for attempt in (
        lambda: open_features(joined),
        lambda: open_features(shards[1]),
    ):
        with pytest.raises(FeatureFileError, match="truncated"):
            attempt()
    status, _, err = scatter_as(1, 2, images)
    assert status == 1
    assert "truncated" in err


def test_the_source_of_virtual_rows_is_relative(joined, monkeypatch):
    monkeypatch.chdir(os.sep)
    with h5py.File(joined) as file:
        files = {s.file_name for s in file["train/features"].virtual_sources()}
        assert files == {f"out.h5.shards/0000{i}-of-00002.h5" for i in (1, 2)}
        assert np.isfinite(file["train/features"][()]).all()


class Stream:
    def __iter__(self):
        yield from ()


def test_streams_are_for_one_process(images, scatter_as, plant, tmp_path):
    from privfeat_extract.sources import Source

    source = Source("wds/some", {"train": Stream()})
    plant("source of images", lambda *args, **kwargs: source)
    status, _, err = scatter_as(0, 2, images)
    assert status == 1
    assert "must be read by one process" in err
    assert "without torchrun" in err
    assert not list(tmp_path.glob("out*"))


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
