"""Shards of several processes, and the file that joins them."""

import os
import platform

import h5py
import numpy as np
import pytest

from privfeat.data import FeatureFileError, open_features
from tests.extract.sharing import assert_same, names, one_batch_of


def test_a_process_that_is_started_again_does_nothing(images, joined, scatter_as):
    before = joined.stat().st_mtime_ns
    status, out, _ = scatter_as(0, 2, images)
    assert status == 0
    assert "already complete, 14 rows" in out
    assert joined.stat().st_mtime_ns == before


@pytest.mark.slow
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


def test_shards_of_hosts_of_two_kinds_are_not_joined(
    images, joined, shards, scatter_as, monkeypatch
):
    """One more image moves others to the next shard, which rounds them otherwise."""
    shards[0].unlink()
    with monkeypatch.context() as other:
        other.setattr(platform, "machine", lambda: "another")
        status, _, err = scatter_as(0, 2, images)
    assert status == 1
    assert "all shards must be made on hosts of one kind" in err
    assert "00001-of-00002.h5 and 00002-of-00002.h5 were not" in err
    assert scatter_as(1, 2, images)[0] == 1  # whoever is last
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    assert scatter_as(0, 2, images, "--overwrite")[0] == 1
    monkeypatch.delenv("OPENBLAS_CORETYPE")
    status, out, err = scatter_as(0, 2, images, "--overwrite")
    assert status == 0, err
    assert "joined 2 shards" in out


def test_a_stopped_run_goes_on_on_a_host_of_its_kind(
    images, scatter, plant, monkeypatch
):
    """One image more moves the place from which it goes on, by a batch."""
    with plant.context() as patched:
        patched("batches of scattering", one_batch_of(plant))
        assert scatter(images)[0] == 130
    with monkeypatch.context() as other:
        other.setenv("ONEDNN_MAX_CPU_ISA", "SSE41")
        status, _, err = scatter(images)
    assert status == 1
    assert "kind_of_host was" in err
    status, _, err = scatter(images)
    assert status == 0
    assert "continuing after 2 rows" in err


@pytest.mark.slow
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
