"""Records in one form: no record decides that of others."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow
import pytest

from privfeat.estimation.plain import frame_of, plain_records, with_floats


@pytest.mark.parametrize("more", [2.5, None, np.nan, True, Decimal(3), 2**70])
@pytest.mark.parametrize(
    "convert",
    [
        lambda table: table,
        lambda table: table.astype(object),
        lambda table: table.to_numpy(),
        lambda table: table.to_numpy().tolist(),
        lambda table: [row for _, row in table.iterrows()],
        lambda table: table.to_dict("records"),
    ],
)
def test_one_value_changes_no_other(more, convert):
    alone, beside = (pd.DataFrame({"x": [1, 2, *m]}) for m in ([], [more]))
    one, two = (plain_records(convert(table)) for table in (alone, beside))
    assert len(two) == 3
    for rows in (one, two):
        if isinstance(rows, list):
            assert rows[:2] == [{"x": 1.0}, {"x": 2.0}]
            assert all(type(each["x"]) is float for each in rows)
        else:
            assert np.asarray(rows).dtype == np.float64
            np.testing.assert_array_equal(np.asarray(rows)[:2], [[1.0], [2.0]])


def test_a_zero_has_no_sign():
    """Beside a half, readers make -0.0 of the "-0" that is a whole number else."""
    for kind in (float, object):
        rows = np.array([[-0.0], [1.0]], kind)
        assert not np.any(np.signbit(plain_records(rows)))
        assert not np.any(np.signbit(with_floats(rows)))
    assert not np.signbit(plain_records([{"x": -0.0}])[0]["x"])


def test_a_table_keeps_its_names():
    table = pd.DataFrame({"b": [1], "a": pd.array([None], "Int64")}, index=[7])
    assert [*plain_records(table).columns] == ["b", "a"]
    sparse = pd.DataFrame({"a": pd.arrays.SparseArray([0.0, 2.0])})
    np.testing.assert_array_equal(plain_records(sparse), [[0.0], [2.0]])
    assert plain_records(table[[]]).shape == (1, 0)


@pytest.mark.parametrize(
    "value",
    [
        "3",
        b"3",
        np.timedelta64(1, "Y"),
        pd.Timestamp(0),
        pd.Timedelta(1),
        pd.Interval(0, 1),
        object(),
        [1],
        1j,
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_values_are_refused(value):
    array = np.empty((2, 1), object)
    array[:, 0] = [1.0, value]
    for X in (array, pd.DataFrame(array), [{"x": 1.0}, {"x": value}]):
        with pytest.raises(TypeError, match="must hold"):
            plain_records(X)


def test_numbers_stand_in_rows_and_images_keep_their_type():
    for X in (np.zeros(3), [1.0, 2.0], pd.Series([1, 2])):
        with pytest.raises(TypeError, match="rows of numbers"):
            plain_records(X)
    images = np.zeros((2, 3, 3, 1), np.uint8)
    assert plain_records(images).dtype == np.uint8
    for X in (images.astype(np.int64), images.astype(object), images.tolist()):
        assert plain_records(X).dtype == np.float64
    for X in (
        np.zeros((2, 1), "M8[ns]"),
        np.zeros((2, 1), "m8[Y]"),
        np.zeros((2, 1, 1), "U1"),
    ):
        with pytest.raises(TypeError, match="rows of numbers"):
            plain_records(X)
    with pytest.raises(TypeError, match="must hold"):
        plain_records([b"a", b"b"])


class Odd:
    """An object of a user."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("secret")

    def __float__(self):
        raise RuntimeError("secret")


def test_what_an_object_raises_is_not_shown():
    odd = np.empty((1, 1), object)
    odd[0, 0] = Odd()
    for convert in (plain_records, with_floats):
        with pytest.raises((TypeError, ValueError)) as caught:
            convert(odd)
        assert "secret" not in str(caught.value)
        assert caught.value.__context__ is None


def test_a_table_of_arrow_becomes_one_of_pandas():
    table = pd.DataFrame({"b": [1, 2], "a": [0.5, None]})
    arrow = pyarrow.Table.from_pandas(table)
    pd.testing.assert_frame_equal(frame_of(arrow), table)
    rows = table.to_numpy()
    for X in (table, rows, [1.0]):
        assert frame_of(X) is X


@pytest.mark.parametrize("name", ["NA", "null", "nan"])
def test_a_name_that_reads_as_a_gap_is_refused(name):
    with pytest.raises(TypeError, match="must hold rows of numbers"):
        plain_records([{name: 1.0}])


@pytest.mark.parametrize("kind", ["M8[ns]", "c16", "V2"])
def test_what_are_neither_numbers_nor_texts_stays_as_a_step_made_it(kind):
    made = np.zeros((2, 1), kind)
    assert with_floats(made) is made
