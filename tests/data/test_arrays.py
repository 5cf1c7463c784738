import numpy as np
import pandas as pd
import pytest

from privfeat.data import FeatureFileError, FeatureWriter, open_features, write_features


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        *((given, None) for given in (np.float16, np.float32, np.float64)),
        *((np.float64, dtype) for dtype in ("float16", "float32")),
    ],
)
def test_write_features_takes_the_stored_type_of_no_array(tmp_path, given, dtype):
    """One record of the first split decided how those of all splits were rounded."""
    path, chosen = tmp_path / "a.h5", {} if dtype is None else {"dtype": dtype}
    write_features(path, {"train": (np.eye(3, dtype=given), [0, 1, 2])}, **chosen)
    features = open_features(path)["train"].X
    assert features.dtype == (dtype or "float32")
    np.testing.assert_array_equal(features[:], np.eye(3))


@pytest.mark.parametrize(
    "made_of", [np.asarray, pd.DataFrame, lambda rows: [*map(tuple, rows.tolist())]]
)
def test_a_fraction_in_one_record_rounds_no_other(tmp_path, made_of):
    """Large whole numbers are rounded once from int64, and twice from float64."""
    whole = 2**62 + 2**38 + np.arange(-2, 3)[:, None]
    fraction = np.append(whole, [[0.5]], axis=0)
    stored = []
    for rows in (whole, fraction, fraction.astype("g")):
        split = made_of(rows), [0] * len(rows)
        write_features(tmp_path / "a.h5", {"train": split}, overwrite=True)
        stored.append(open_features(tmp_path / "a.h5")["train"].X[: len(whole)])
    np.testing.assert_array_equal(stored[1], stored[0])
    np.testing.assert_array_equal(stored[2], stored[0])


def test_a_row_of_texts_makes_no_texts_of_others(tmp_path):
    """NumPy makes texts of all numbers in a list with one: a half of them is 0.1."""
    rows = [[np.float16(0.1)] * 2, ["0.5", "0.5"]]
    write_features(tmp_path / "a.h5", {"train": (rows, [0, 1])})
    stored = open_features(tmp_path / "a.h5")["train"].X[:]
    np.testing.assert_array_equal(stored, [[np.float16(0.1)] * 2, [0.5, 0.5]])


def test_features_of_text_are_refused(tmp_path):
    with pytest.raises(TypeError, match="must hold numbers, got text"):
        write_features(tmp_path / "a.h5", {"train": (np.array([["0.5"]]), [0])})


def test_write_features_leaves_only_the_file(tmp_path, arrays):
    write_features(tmp_path / "a.h5", arrays)
    assert [path.name for path in tmp_path.iterdir()] == ["a.h5"]


def test_write_features_is_reproducible_to_the_byte(tmp_path, arrays):
    write_features(tmp_path / "a.h5", arrays)
    write_features(tmp_path / "b.h5", arrays)
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()


def test_write_features_keeps_an_existing_file(feature_file, arrays):
    before = feature_file.read_bytes()
    with pytest.raises(FeatureFileError, match="must not exist yet"):
        write_features(feature_file, arrays)
    assert feature_file.read_bytes() == before
    write_features(feature_file, {"train": arrays["test"]}, overwrite=True)
    assert set(open_features(feature_file)) == {"train"}


@pytest.mark.parametrize(
    ("features", "labels", "message"),
    [
        (np.full((2, 2), np.nan), [0, 1], "features must be finite"),
        (np.full((2, 2), np.inf), [0, 1], "features must be finite"),
        (np.eye(2), [0], "labels must be integers, one per row"),
        (np.eye(2), [0.5, 1.0], "labels must be integers, one per row"),
        (np.eye(2), [[0, 2], [1, 1]], "must be zeros and ones"),
        (np.ones(2), [0, 1], "splits must hold at least one pair"),
        (np.empty((2, 0)), [0, 1], "n_features must be > 0"),
        (np.eye(2), np.zeros((2, 1, 1), int), "labels must be integers, one per row"),
        ([[1.0, 2.0]] * 814 + [[1.0]], [0] * 815, "must be rectangular"),
    ],
)
def test_write_features_refuses_bad_arrays(tmp_path, features, labels, message):
    with pytest.raises(ValueError, match=message) as caught:
        write_features(tmp_path / "a.h5", {"train": (features, labels)})
    assert "815" not in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (pd.DataFrame({"born": pd.to_datetime(["2008-08-15"] * 2)}), "dates in .*born"),
        (np.array([["2008-08-15"], ["2008-08-16"]], "M8[D]"), "dates"),
        (np.full((2, 1), 1 + 2j), "complex"),
    ],
)
def test_write_features_refuses_what_would_change_its_meaning(
    tmp_path, features, message
):
    with pytest.raises(TypeError, match=message):
        write_features(tmp_path / "a.h5", {"train": (features, [0, 1])})


@pytest.mark.parametrize("shape", [(815,), (815, 3), (815, 2, 1)])
def test_a_batch_of_another_shape_shows_no_number_of_rows(tmp_path, shape):
    with FeatureWriter(tmp_path / "a.h5", n_features=2) as writer:
        with pytest.raises(ValueError, match="features must have shape") as caught:
            writer.append("train", np.zeros(shape), np.zeros(815, int))
    assert "815" not in str(caught.value)


def test_write_features_refuses_what_float16_cannot_hold(tmp_path):
    huge = np.full((2, 2), 1e5)
    with pytest.raises(ValueError, match="above 65504"):
        write_features(tmp_path / "a.h5", {"train": (huge, [0, 1])}, dtype="float16")
    write_features(tmp_path / "a.h5", {"train": (huge, [0, 1])})


def test_write_features_refuses_splits_of_different_width(tmp_path):
    splits = {"train": (np.eye(3), range(3)), "test": (np.eye(2), range(2))}
    with pytest.raises(ValueError, match=r"shape \(m, 3\), got \(m, 2\)"):
        write_features(tmp_path / "a.h5", splits)


@pytest.mark.parametrize("name", ["", "a/b", ".hidden"])
def test_write_features_refuses_bad_split_names(tmp_path, name):
    with pytest.raises(ValueError, match="must be a plain name"):
        write_features(tmp_path / "a.h5", {name: (np.eye(2), [0, 1])})


def test_write_features_refuses_reserved_metadata(tmp_path, arrays):
    with pytest.raises(ValueError, match=r"reserved names, got \['complete'\]"):
        write_features(tmp_path / "a.h5", arrays, metadata={"complete": True})


def test_write_features_stores_many_class_names(tmp_path, arrays):
    names = [f"class number {i} of a very long list" for i in range(21_843)]
    write_features(tmp_path / "a.h5", arrays, class_names=names)
    assert open_features(tmp_path / "a.h5").class_names == tuple(names)


@pytest.mark.parametrize("user", [-1, -(2**63), 2**63])
def test_users_that_a_fit_would_refuse_are_not_written(tmp_path, user):
    """It was found after the whole file; numbers from 2**63 on became others."""
    kind = np.uint64 if user > 0 else np.int64
    groups = np.array([1, user], kind)
    with pytest.raises(ValueError, match="groups must"):
        write_features(tmp_path / "f.h5", {"train": (np.eye(2), [0, 1], groups)})


@pytest.mark.parametrize("kind", [list, np.array, pd.Series])
def test_write_features_numbers_names_by_the_list_of_all(tmp_path, kind):
    """One record more, of a class that no other has, moves no other label."""
    names, labels = ("a", "b", "c"), ["c", "a", "c"]
    for more in ([], ["b"]):
        y = kind([*labels, *more])
        path = tmp_path / f"{len(y)}.h5"
        write_features(path, {"train": (np.eye(len(y)), y)}, class_names=names)
        assert open_features(path)["train"].y[:3].tolist() == [2, 0, 2]


@pytest.mark.parametrize("label", ["d", None, 1])
def test_write_features_refuses_names_out_of_the_list(tmp_path, label):
    y = np.array(["a", label], object)
    with pytest.raises(ValueError, match="every possible name") as refused:
        write_features(tmp_path / "a.h5", {"t": (np.eye(2), y)}, class_names=["a"])
    assert "'d'" not in str(refused.value)
    with pytest.raises(ValueError, match="by a public list of them"):
        write_features(tmp_path / "a.h5", {"train": (np.eye(2), ["a", "b"])})
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("names", "labels"),
    [(["1", "2", "x"], [1, 2, 1]), (["true", "false"], [True, False, True])],
)
def test_numbers_are_no_places_where_names_are_numbers(tmp_path, names, labels):
    """A reader makes numbers of the codes "1" and "2", unless one record has "x"."""
    with pytest.raises(ValueError, match="the name or the place"):
        write_features(tmp_path / "a.h5", {"t": (np.eye(3), labels)}, class_names=names)
    texts = [str(label).lower() for label in labels]
    write_features(tmp_path / "a.h5", {"t": (np.eye(3), texts)}, class_names=names)
    assert open_features(tmp_path / "a.h5")["t"].y.tolist() == [0, 1, 0]
    for own in (["0", "1", "2"], ["a", "b", "c"]):
        write_features(
            tmp_path / "b.h5",
            {"t": (np.eye(3), [2, 0, 1])},
            class_names=own,
            overwrite=True,
        )


def test_users_that_a_reader_may_have_rounded_are_not_stored(tmp_path):
    users = pd.Series([2**53, 5, 6])
    splits = {"t": (np.eye(3), [0, 1, 0], users)}
    with pytest.raises(ValueError, match="Pass them as texts"):
        write_features(tmp_path / "a.h5", splits)
    with FeatureWriter(tmp_path / "b.h5", n_features=3) as writer:
        with pytest.raises(ValueError, match="Pass them as texts"):
            writer.append("t", np.eye(3), [0, 1, 0], groups=users)
        writer.append("t", np.eye(3), [0, 1, 0], groups=users.to_numpy())
