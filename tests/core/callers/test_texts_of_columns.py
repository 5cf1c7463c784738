"""One record with a word makes texts of all numbers of its column."""

from decimal import Decimal
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from privfeat import DPLeastSquares, PrivacyLedger, PublicColumns
from privfeat.core.callers.forms import values_vary as vary
from privfeat.data.plain import with_floats
from privfeat.exceptions import PrivacyError

CELLS = [["3", "3.0", ""], ["1", "2.5"], ["True", "False"], ["1,200", "3"], ["1e5"]]


def read(cells, *more, **options):
    lines = [f'"{cell}",0' for cell in (*cells, *more)]
    return pd.read_csv(StringIO("\n".join(["x,y", *lines])), **options)[["x"]]


@pytest.mark.parametrize("cells", CELLS, ids=str)
@pytest.mark.parametrize("boxed", [False, True])
def test_texts_that_one_word_made_of_numbers_are_found(cells, boxed):
    """Whatever reads the table; a word alone is none."""
    comma = {"thousands": ","} if "," in cells[0] else {}
    alone, beside = read(cells, **comma), read(cells, "ICU", **comma)
    assert isinstance(beside["x"][0], str) > isinstance(alone["x"][0], str)
    for form in (
        lambda table: table.astype(object) if boxed else table,
        lambda table: table.astype("category"),
        lambda table: table["x"],
        lambda table: table.to_numpy(str if boxed else object),
        lambda table: np.char.encode(table.to_numpy(str)),
        lambda table: table.to_numpy().tolist(),
        lambda table: list(table.to_numpy()),
        lambda table: table.to_dict("records"),
        lambda table: np.array(table.to_dict("records")),
        lambda table: [[("x", value)] for value in table["x"]],
    ):
        assert vary(form(beside))
        assert not vary(form(read(["ICU", "B2"])))


READ = {
    "as it comes": read,
    "nullable": lambda *cells: read(*cells, dtype_backend="numpy_nullable"),
    "arrow": lambda *cells: read(*cells, dtype_backend="pyarrow"),
    "converted": lambda *cells: read(*cells).convert_dtypes(),
    "strings": lambda *cells: read(*cells, dtype="string"),
    "strings later": lambda *cells: read(*cells).astype("string"),
    "texts alone later": lambda *cells: read(*cells).astype(
        {} if pd.api.types.is_numeric_dtype(read(*cells)["x"]) else "string"
    ),
}
SHARED = [
    ["3", "1"],
    ["2.5", ""],
    ["True", "False"],
    [str(10**17), ""],
    ["007", "-0.0"],
]


@pytest.mark.parametrize("form", READ.values(), ids=READ)
@pytest.mark.parametrize("cells", SHARED, ids=str)
def test_values_that_neighbours_share_are_equal_where_both_are_taken(form, cells):
    """Whatever the user lets pandas make of columns, after a look at all records."""
    tables = form(cells), form(cells, "ICU"), form(cells, "9"), form(cells, "")
    for kind in (None, "category", object):
        typed = [table if kind is None else table.astype(kind) for table in tables]
        taken = [with_floats(t.to_numpy(object))[:2] for t in typed if not vary(t)]
        for rows in taken:
            np.testing.assert_array_equal(rows, taken[0])
        assert vary(typed[1])
        assert not vary(typed[1], PublicColumns({"x": (0.0, 9.0)}))


ODD = {
    "truth values": (["yes", "no"], {"true_values": ["yes"], "false_values": ["no"]}),
    "dates": (["2020-01-01", "2020-01-31"], {"parse_dates": ["x"]}),
    "thousands": (["1.000.000", "2.000.000"], {"thousands": "."}),
    "spaces": (["1 000", "2 000"], {"thousands": " "}),
    "decimals": (["1.000,5", "2.000,5"], {"thousands": ".", "decimal": ","}),
}


@pytest.mark.parametrize(("cells", "options"), ODD.values(), ids=ODD)
@pytest.mark.parametrize("more", [[], [""]], ids=["full", "gap"])
def test_what_readers_are_told_to_read_is_refused_in_one_of_two_tables(
    cells, options, more
):
    alone, beside = read(cells, *more, **options), read(cells, *more, "ICU", **options)
    assert type(alone["x"][0]) is not type(beside["x"][0])
    for form in (lambda table: table, lambda table: table.to_numpy().tolist()):
        assert vary(form(alone)) or vary(form(beside))


def test_what_is_neither_number_nor_text_is_refused():
    gaps = [None, pd.NA, pd.NaT, np.nan]
    for value in [*gaps, 3, 2.5, np.float32(1), Decimal(1), "ICU", b"ICU"]:
        assert not vary([[value]])
        assert not vary(pd.DataFrame({"x": pd.Series([value], dtype=object)}))
    odd = [True, np.True_, pd.Timestamp(0), np.datetime64(0, "s"), pd.Timedelta(1)]
    for value in [*odd, pd.Interval(0, 1), pd.Period("2020"), "0", b"1e5", " true "]:
        assert vary([[value]])
        assert vary(pd.DataFrame({"x": pd.Series([value], dtype=object)}))
    assert vary(pd.get_dummies(pd.Series(["a", "b"])))
    assert not vary(np.zeros((2, 2)))


def test_what_takes_texts_alone_may_get_any():
    for step in (HashingVectorizer(), FeatureHasher(input_type="string")):
        assert not vary([["3"], ["ICU"]], step)
        assert not vary(np.array(["3", "ICU"]), step)
        with pytest.raises((AttributeError, TypeError)):
            step.transform([[3], [4]])
    assert vary([{"ward": "3"}], FeatureHasher())
    assert not vary(["3", "a text"])
    assert not vary([np.zeros((2, 2)), "a text"])


@pytest.fixture
def fit(tmp_path):
    ledger = PrivacyLedger(tmp_path / "l", dataset="d", epsilon=9.0, delta=1e-5)

    def fitted(X, *steps):
        last = DPLeastSquares(classes=[0, 1], center=False, ledger=ledger)
        make_pipeline(*steps, last).fit(X, np.arange(len(X)) % 2)
        return len(ledger.history)

    fitted.ledger = ledger
    return fitted


WARDS = ["1", "2", "3"] * 10
ENCODER = OneHotEncoder(sparse_output=False, handle_unknown="ignore")
KNOWN = FrozenEstimator(ENCODER.fit(pd.DataFrame({"x": WARDS[:3]})))
NAMELESS = FrozenEstimator(clone(ENCODER).fit([["1"], ["2"], ["3"]]))
BESIDE = ColumnTransformer([("x", KNOWN, ["x"])], sparse_threshold=0)
HASHER = FeatureHasher(8)
VARYING = {
    "a word": (read(WARDS, "ICU"), KNOWN),
    "a gap": (read(WARDS, "").astype("string").fillna(""), KNOWN),
    "asked for": (read(WARDS, "ICU", dtype="string"), KNOWN),
    "beside others": (read(WARDS, "ICU").assign(n=1.0), BESIDE),
    "mappings": (read(WARDS, "ICU").to_dict("records"), HASHER),
    "rows": (read(WARDS, "ICU").to_numpy().tolist(), NAMELESS),
}


@pytest.mark.parametrize(("X", "step"), VARYING.values(), ids=VARYING)
def test_a_ledger_refuses_texts_that_may_be_numbers(fit, X, step):
    words = r"types of columns.*no texts that read as numbers"
    with pytest.raises(PrivacyError, match=words):
        fit(X, step)
    assert fit.ledger.history == []


def test_a_ledger_takes_texts_that_no_record_can_make(fit):
    assert fit(read(["A1", "B2"] * 10), KNOWN)
    assert fit(["a text", "3"] * 10, HashingVectorizer(n_features=8)) == 2
    wards = {"kind": "category", "categories": ["1", "2", "3", "ICU"]}
    assert fit(read(WARDS, "ICU"), PublicColumns({"x": wards})) == 3
