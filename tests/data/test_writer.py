import shutil
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

import h5py
import numpy as np
import pytest

from privfeat.data import (
    FeatureFileError,
    FeatureWriter,
    open_features,
    write_features,
)
from privfeat.data.writing.writer import Position
from privfeat.exceptions import PrivacyWarning
from tests.data.rows import write_rows


def test_feature_writer_keeps_rows_apart_from_the_memory_of_the_caller(begin):
    buffer = np.zeros((1, 5), np.float16)
    with begin(flush_seconds=100.0) as writer:
        for value in (1.0, 2.0):
            buffer[:] = value
            writer.append("train", buffer, [0])
        writer.finish()
    assert open_features(writer.path)["train"].X[:, 0].tolist() == [1.0, 2.0]


def test_feature_writer_refuses_other_arguments(begin, arrays):
    with begin() as writer:
        write_rows(writer, arrays, stop=1)
    with pytest.raises(FeatureFileError, match="model was 'toy' and is 'big'"):
        begin(arguments={"model": "big"})
    with pytest.raises(FeatureFileError, match="n_features was 5 and is 6"):
        begin(n_features=6)
    with pytest.raises(FeatureFileError, match="dtype was 'float16' and is 'float32'"):
        begin(dtype="float32")
    with begin() as writer:
        assert writer.position("train") == Position(2, 2)


def test_feature_writer_starts_anew_where_nothing_was_written(begin, arrays):
    writer = begin(arguments={"model": "big"})
    kept = writer.partial.with_name("kept")
    shutil.copytree(writer.partial, kept)
    writer.close()
    assert not writer.partial.exists()
    shutil.move(kept, writer.partial)  # as after a kill
    with begin() as writer:
        assert not writer.resumed
        write_rows(writer, arrays)
        writer.finish()
    assert writer.path.exists()


def test_overwriting_discards_earlier_parts_at_once(begin, arrays):
    with begin() as writer:
        write_rows(writer, arrays)
    killed = begin(overwrite=True)
    assert [path.name for path in killed.partial.iterdir()] == [".lock"]
    killed.close(flush=False)
    with begin(arguments={"model": "big"}) as writer:
        assert not writer.resumed


def test_write_features_keeps_nothing_of_a_call_that_was_killed(begin, arrays):
    with begin(arguments={"writer": "write_features"}) as killed:
        write_rows(killed, arrays, stop=2)
    assert killed.partial.exists()
    write_features(killed.path, arrays, dtype="float16")
    with open_features(killed.path) as file:
        assert {name: len(split) for name, split in file.items()} == {
            name: len(labels) for name, (_, labels) in arrays.items()
        }
    assert not killed.partial.exists()


def test_feature_writer_lets_one_process_write(begin, arrays):
    with begin() as writer:
        write_rows(writer, arrays, stop=1)
        with pytest.raises(FeatureFileError, match="another process is writing"):
            begin()
        with pytest.raises(FeatureFileError, match="another process is writing"):
            begin(overwrite=True)
    with begin(overwrite=True) as writer:  # the lock was let go of
        assert not writer.resumed


def test_a_copy_of_a_folder_in_use_is_free(begin, arrays, tmp_path):
    with begin() as writer:
        write_rows(writer, arrays, stop=1)
        shutil.copytree(writer.partial, tmp_path / "copy.h5.partial")
        options = {"n_features": 5, "arguments": {"model": "toy"}}
        with FeatureWriter(tmp_path / "copy.h5", **options) as copy:
            assert copy.resumed


def test_a_writer_may_be_closed_in_another_thread(begin, arrays):
    writer = begin()
    write_rows(writer, arrays, stop=1)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(writer.close).result()
    with begin() as writer:
        assert writer.resumed


def test_feature_writer_counts_skipped_records_and_keeps_no_name(begin, arrays):
    features, labels = arrays["train"]
    with begin() as writer:
        writer.append("train", features[:3], labels[:3], skipped=["a.png"])
        writer.append("train", features[:0], labels[:0], skipped=["b.png"])
    with begin() as writer:
        assert writer.position("train") == Position(5, 3)
        writer.append("train", features[3:], labels[3:], skipped=["c.png"])
        assert writer.n_skipped("train") == 3
        kept = [path.read_bytes() for path in writer.partial.iterdir()]
        writer.finish()
    train = open_features(writer.path)["train"]
    assert train.metadata["n_skipped"] == 3
    assert not any(b".png" in text for text in [*kept, writer.path.read_bytes()])
    np.testing.assert_array_equal(train.X[:], features)


def test_messages_of_another_run_hold_no_digest(begin, arrays):
    features, labels = arrays["train"]
    with begin(arguments={"file_lists": {"train": "digest"}}) as writer:
        writer.append("train", features, labels)
        writer.flush()
    with pytest.raises(FeatureFileError, match="file_lists was another") as caught:
        begin(arguments={"file_lists": {"train": "secret"}})
    assert "digest" not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_feature_writer_tells_of_rows_of_zeros(begin, arrays):
    features, labels = arrays["train"]
    with begin() as writer:
        zeros = np.zeros_like(features[:1])
        with pytest.warns(UserWarning, match="some rows of split 'train' are all zero"):
            writer.append("train", zeros, labels[:1])
        writer.append("train", zeros, labels[:1])  # said once


def test_feature_writer_gives_back_labels(begin, arrays):
    with begin() as writer:
        write_rows(writer, arrays)
        np.testing.assert_array_equal(writer.labels("train"), arrays["train"][1])


def test_feature_writer_refuses_a_batch_of_another_kind(begin, arrays):
    features, labels = arrays["train"]
    with begin() as writer:
        writer.append("train", features, labels)
        with pytest.raises(ValueError, match="must give"):
            writer.append("train", features, labels, groups=labels)
        with pytest.raises(ValueError, match=r"shape \(m, 5\)"):
            writer.append("train", features[:, :4], labels)
        with pytest.raises(ValueError, match=r"'labels': dtype\('int64'\)"):
            writer.append("train", features, np.eye(7, dtype=int))


@pytest.mark.parametrize(
    "changes", [{"n_features": 0}, {"n_features": float("nan")}, {"dtype": "float64"}]
)
def test_feature_writer_refuses_bad_parameters(begin, changes, tmp_path):
    with pytest.raises(ValueError, match="must be"):
        begin(**changes)
    assert not list(tmp_path.iterdir())


def test_feature_writer_marks_the_file_complete_last(begin, arrays, monkeypatch):
    """Until its last step the file in the making is one that readers refuse."""
    states = []
    flush = h5py.File.flush

    def spy(file):
        states.append(bool(file.attrs["complete"]))
        flush(file)

    monkeypatch.setattr(h5py.File, "flush", spy)
    with begin() as writer:
        write_rows(writer, arrays)
        writer.finish()
    assert states == [False]
    assert open_features(writer.path).metadata["complete"] is True


def test_feature_writer_keeps_rows_when_the_disk_is_full(begin, arrays, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched, begin() as writer:
        write_rows(writer, arrays)
        patched.setattr(h5py.Group, "create_dataset", full)
        with pytest.raises(OSError, match=r"out\.h5 could not be") as caught:
            writer.finish()
    assert caught.value.errno == 28
    assert not writer.path.exists()
    assert not (writer.partial / "assembled.h5").exists()
    with begin() as writer:
        assert writer.position("test") == Position(4, 4)
        writer.finish()
    np.testing.assert_array_equal(
        open_features(writer.path)["train"].X[:], arrays["train"][0]
    )


def test_users_in_another_order_than_the_rows_are_not_written(tmp_path):
    """The file said for good that rows are of other users."""
    pd = pytest.importorskip("pandas")
    rows = pd.DataFrame(np.eye(3), index=[2, 1, 0])
    users = pd.Series([7, 7, 8], index=[0, 1, 2])
    path = tmp_path / "features.h5"
    with pytest.raises(ValueError, match="must have the index of X and y in its order"):
        write_features(path, {"train": (rows, [0, 1, 0], users)})
    assert not path.exists()
    write_features(path, {"train": (rows, [0, 1, 0], users.loc[rows.index])})
    assert open_features(path)["train"].groups.tolist() == [8, 7, 7]


def test_rows_of_users_are_not_written_without_them_in_silence(tmp_path):
    """Fits of the new file protected each row alone, and could not tell."""
    first, second = tmp_path / "first.h5", tmp_path / "second.h5"
    write_features(first, {"train": (np.eye(3), [0, 1, 0], [7, 7, 8])})
    split = open_features(first)["train"]
    with pytest.warns(PrivacyWarning, match=r"Pass \(split.X, split.y, split.groups\)"):
        write_features(second, {"train": (split.X, split.y)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = {"train": (split.X, split.y, split.groups)}
        write_features(second, kept, overwrite=True)


def test_a_writer_that_goes_on_takes_no_record_twice(tmp_path):
    """The same lines, run again after a kill, wrote each record a second time."""
    path, rows = tmp_path / "features.h5", np.eye(4, dtype=np.float32)

    def lines(stop):
        with FeatureWriter(path, n_features=4, dtype="float32") as writer:
            for number in range(stop):
                writer.append("train", rows[number : number + 1], [0])
            writer.finish(class_names=["a"])

    with (
        suppress(RuntimeError),
        FeatureWriter(path, n_features=4, dtype="float32") as writer,
    ):
        writer.append("train", rows[:2], [0, 0])
        raise RuntimeError
    with pytest.raises(ValueError, match="rows would stand twice in the file"):
        lines(4)
    with FeatureWriter(path, n_features=4, dtype="float32") as writer:
        seen = writer.position("train").seen
        writer.append("train", rows[seen:], [0] * (4 - seen))
        writer.finish(class_names=["a"])
    np.testing.assert_array_equal(open_features(path)["train"].X[:], rows)


def test_pieces_of_a_file_of_chosen_rows_are_refused(tmp_path):
    """Other records chose them, and no piece says so."""
    for number, mark in enumerate(({"chosen_by": ("x",)}, {"limited": True})):
        chosen = replace(open_rows(tmp_path / f"{number}.h5"), **mark)
        with (
            FeatureWriter(tmp_path / f"to{number}.h5", n_features=2) as writer,
            pytest.raises(ValueError, match="other records chose its rows"),
        ):
            writer.append("train", chosen, [0, 1])


def test_pieces_of_a_file_with_users_ask_for_them(tmp_path):
    X = open_rows(tmp_path / "a.h5", users=[[5, 6]])
    with FeatureWriter(tmp_path / "b.h5", n_features=2) as writer:
        with pytest.warns(PrivacyWarning, match="says whose each row is"):
            writer.append("train", X, [0, 1])
        writer.append("test", X, [0, 1], groups=[5, 6])


def open_rows(path, users=()):
    write_features(path, {"train": (np.eye(2), [0, 1], *users)})
    return open_features(path)["train"].X
