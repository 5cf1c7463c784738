"""Values of tables in one form: no record decides that of others."""

import numpy as np
import pandas as pd
import pytest

from privfeat.data.plain import plain_row, with_floats

TEXTS = ["2024-05-05 08:00:00", "2021-01-02 03:04:05"]
FINE = "2024-05-05 10:00:00.123456789"


def dates(texts, zone):
    return pd.to_datetime(pd.Series(texts), format="ISO8601", utc=zone)


@pytest.mark.parametrize("zone", [False, True])
def test_one_fine_time_changes_no_other_date(zone):
    """pandas has one unit for a column, NumPy for an array."""
    plain, beside = (dates([*TEXTS, *more], zone) for more in ([], [FINE]))
    assert plain.dtype != beside.dtype
    for place in range(2):
        one, two = (plain_row(pd.DataFrame({"d": d}), place) for d in (plain, beside))
        pd.testing.assert_frame_equal(one, two)
    if not zone:
        one, two = (with_floats(d.to_numpy())[:2] for d in (plain, beside))
        assert one.dtype == two.dtype
        assert np.array_equal(one, two)
    one, two = (with_floats(d.astype(object).to_numpy())[:2] for d in (plain, beside))
    assert [d.unit for d in one] == [d.unit for d in two]


def test_one_fine_duration_changes_no_other():
    plain = np.array([1, 2], "timedelta64[s]")
    beside = np.array([10**9, 2 * 10**9, 1], "timedelta64[ns]")
    assert with_floats(plain).dtype == with_floats(beside).dtype
    assert np.array_equal(with_floats(plain), with_floats(beside)[:2])
    boxed = [np.empty(2, object) for _ in range(2)]
    for box, durations in zip(boxed, (plain, beside), strict=True):
        box[:] = [durations[0], "a text"]
    one, two = (with_floats(box)[0] for box in boxed)
    assert one.dtype == two.dtype
    assert one == two


class Odd:
    """An object of a user."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("secret")


def test_what_an_object_raises_is_not_shown():
    odd = np.empty((1, 1), object)
    odd[0, 0] = Odd()
    with pytest.raises(ValueError, match="kept back") as caught:
        with_floats(odd)
    assert "secret" not in str(caught.value)


def test_one_fraction_changes_no_other_interval():
    whole, halves = (pd.cut([1, 3], bins) for bins in ([0, 2, 4], [0.0, 2.0, 4.0, 4.5]))
    rows = [plain_row(pd.DataFrame({"i": i}), 0) for i in (whole, halves)]
    pd.testing.assert_frame_equal(*rows)


def test_intervals_of_dates_have_ends_of_one_unit():
    ends = dates(TEXTS[::-1], False)
    rows = [
        plain_row(pd.DataFrame({"i": [pd.Interval(*ends.dt.as_unit(unit))]}), 0)
        for unit in ("us", "ns")
    ]
    pd.testing.assert_frame_equal(*rows)
