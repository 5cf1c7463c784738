"""Values of tables in one form: no record decides that of others."""

import numpy as np
import pandas as pd
import pytest

from privfeat.data.plain import plain_row, with_floats


@pytest.mark.parametrize("more", [2.5, None, "a word"])
def test_one_value_changes_no_other(more):
    alone, beside = (pd.DataFrame({"x": [1, 2, *m]}) for m in ([], [more]))
    assert alone["x"].dtype != beside["x"].dtype
    for place in range(2):
        one, two = (plain_row(table, place) for table in (alone, beside))
        pd.testing.assert_frame_equal(one, two)
        one, two = (with_floats(t.to_numpy())[place] for t in (alone, beside))
        assert np.array_equal(one, two)


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
