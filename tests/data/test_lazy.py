import multiprocessing
import os
import pickle

import hypothesis.extra.numpy as arrays_of
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privfeat.data import FeatureFileError, open_features, write_features

N_ROWS, N_FEATURES = 700, 400  # several chunks


@pytest.fixture(scope="module")
def matrix():
    rng = np.random.default_rng(3)
    return rng.normal(size=(N_ROWS, N_FEATURES)).astype(np.float32)


@pytest.fixture(scope="module")
def lazy(matrix, tmp_path_factory):
    path = tmp_path_factory.mktemp("lazy") / "lazy.h5"
    write_features(path, {"train": (matrix, np.zeros(N_ROWS, int))})
    return open_features(path)["train"].X


def test_lazy_features_describe_themselves_without_reading(lazy):
    assert lazy.shape == (N_ROWS, N_FEATURES)
    assert lazy.ndim == 2
    assert lazy.dtype == np.float32
    assert len(lazy) == N_ROWS
    assert lazy.nbytes == N_ROWS * N_FEATURES * 4
    assert repr(lazy) == (
        "LazyFeatures('lazy.h5', 'train/features', shape=(700, 400), dtype=float32)"
    )


@pytest.mark.parametrize(
    "key",
    [
        0,
        -1,
        np.int64(5),
        slice(None),
        slice(3, 9),
        slice(None, None, 7),
        slice(None, None, -1),
        slice(9, 3),
        slice(-5, None),
        [3, 1, 1, -2],
        np.array([], int),
        [],
        Ellipsis,
        (slice(2, 4), slice(None)),
        (slice(2, 4), 3),
        ([1, 2, 2], Ellipsis),
        (Ellipsis, slice(0, 2)),
        (5, 6),
        (),
    ],
    ids=str,
)
def test_lazy_features_index_like_numpy(lazy, matrix, key):
    expected = matrix[np.asarray(key, int) if isinstance(key, list) else key]
    np.testing.assert_array_equal(lazy[key], expected)


def test_lazy_features_take_a_boolean_mask(lazy, matrix):
    mask = matrix[:, 0] > 0.5
    np.testing.assert_array_equal(lazy[mask], matrix[mask])


@given(
    index=arrays_of.arrays(
        np.int64, st.integers(0, 40), elements=st.integers(-700, 699)
    )
)
def test_read_rows_equals_numpy(lazy, matrix, index):
    np.testing.assert_array_equal(lazy.read_rows(index), matrix[index])


def test_read_returns_a_range_of_rows(lazy, matrix):
    np.testing.assert_array_equal(lazy.read(10, 600), matrix[10:600])
    assert lazy.read(4, 4).shape == (0, N_FEATURES)


@pytest.mark.parametrize("n_rows", [1, 3, 163, N_ROWS])
def test_read_begins_where_a_cache_line_does(lazy, matrix, n_rows):
    rows = lazy.read(0, n_rows)
    assert rows.ctypes.data % 64 == 0
    assert rows.flags.c_contiguous
    assert rows.flags.writeable
    np.testing.assert_array_equal(rows, matrix[:n_rows])


@pytest.mark.parametrize(("start", "stop"), [(-1, 3), (5, 4), (0, N_ROWS + 1)])
def test_read_refuses_rows_outside(lazy, start, stop):
    with pytest.raises(IndexError, match="rows must be some of those"):
        lazy.read(start, stop)


@pytest.mark.parametrize("key", [N_ROWS, -N_ROWS - 1, [0, N_ROWS], 1.5, [[1]], "a"])
def test_lazy_features_refuse_bad_indices(lazy, key):
    with pytest.raises(IndexError):
        lazy[key]


def test_lazy_features_refuse_a_mask_of_another_length(lazy):
    with pytest.raises(IndexError, match="one entry for each row"):
        lazy[np.ones(3, bool)]


def test_lazy_features_convert_to_an_array(lazy, matrix):
    np.testing.assert_array_equal(np.asarray(lazy), matrix)
    assert np.asarray(lazy, np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="copy must be None or True"):
        np.array(lazy, copy=False)


def test_lazy_features_pickle_by_path(lazy, matrix):
    lazy.read(0, 1)
    data = pickle.dumps(lazy)
    assert len(data) < 1000
    np.testing.assert_array_equal(pickle.loads(data)[5:7], matrix[5:7])


def test_lazy_features_survive_a_relative_path_and_chdir(tmp_path, monkeypatch, arrays):
    monkeypatch.chdir(tmp_path)
    write_features("here.h5", arrays)
    train = open_features("here.h5")["train"]
    monkeypatch.chdir(os.sep)
    np.testing.assert_array_equal(train.X[:], arrays["train"][0])


def read_in_child(lazy, pipe):
    pipe.send(lazy.read_rows([1, 650]).sum())


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="needs fork"
)
@pytest.mark.filterwarnings("ignore:.*fork:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_lazy_features_reopen_after_a_fork(lazy, matrix):
    lazy.read(0, 1)
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=read_in_child, args=(lazy, theirs))
    child.start()
    assert ours.poll(30)
    assert ours.recv() == matrix[[1, 650]].sum()
    child.join()


def test_lazy_features_notice_that_the_file_was_replaced(tmp_path, arrays):
    path = tmp_path / "a.h5"
    write_features(path, arrays)
    train = open_features(path)["train"].X
    write_features(path, {"train": (np.eye(3), np.arange(3))}, overwrite=True)
    with pytest.raises(FeatureFileError, match="but was changed"):
        train[0]


def test_lazy_features_name_a_file_that_is_gone(tmp_path, arrays):
    path = tmp_path / "a.h5"
    write_features(path, arrays)
    train = open_features(path)["train"].X
    path.unlink()
    with pytest.raises(FeatureFileError, match="must be readable"):
        train[0]


def test_a_file_in_the_place_of_another_is_refused(tmp_path):
    """Else users of one file would stand beside the features of another."""
    path, X = tmp_path / "f.h5", np.eye(6, dtype=np.float32)
    columns = X, np.arange(6) % 3, np.arange(6) // 2

    def write(order):
        rows = {"train": tuple(column[order] for column in columns)}
        write_features(path, rows, overwrite=True)

    write(np.arange(6))
    split, other = open_features(path)["train"], open_features(path)["train"]
    assert split.groups.tolist() == [0, 0, 1, 1, 2, 2]
    assert np.array_equal(other.X[:], X)
    write(np.arange(6)[::-1])
    for read in (
        lambda: split.X[:],
        lambda: split.labels,
        lambda: pickle.loads(pickle.dumps(other.X))[:],
    ):
        with pytest.raises(FeatureFileError, match="as it was opened, but was changed"):
            read()
    assert np.array_equal(other.X[:], X)  # that file is still open
    write(np.arange(6))
    assert np.array_equal(split.X[:], X)  # the same rows again
