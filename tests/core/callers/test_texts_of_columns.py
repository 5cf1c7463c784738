"""One record with a word makes texts of all numbers of its column."""

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
from privfeat.core.callers.forms import texts_vary
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
        assert texts_vary(form(beside))
        assert not texts_vary(form(read(["ICU", "B2"])))


def test_columns_that_were_asked_for_as_texts_have_texts():
    cells = ["3", "007", "2.5", "True", ""]
    for kind in ("string", "category"):
        table = read(cells, dtype="string").astype(kind)
        assert not texts_vary(table)
        assert not texts_vary(table["x"])


GUESSES = {
    "nullable": lambda *cells: read(*cells, dtype_backend="numpy_nullable"),
    "arrow": lambda *cells: read(*cells, dtype_backend="pyarrow"),
    "converted": lambda *cells: read(*cells).convert_dtypes(),
}


@pytest.mark.parametrize("guess", GUESSES.values(), ids=GUESSES)
@pytest.mark.parametrize("cells", [["3", "1"], ["2.5", ""], ["True", "False"]], ids=str)
def test_who_guesses_that_texts_are_strings_has_numbers_that_are_found(guess, cells):
    """Beside a word they are of the type ``string``, as if they were asked for."""
    assert not texts_vary(guess(cells, "ICU"))
    alone = guess(cells)
    for form in (alone, alone["x"], alone.astype("category"), alone.assign(z="ICU")):
        assert texts_vary(form)
    assert not texts_vary(alone, PublicColumns({"x": (0.0, 9.0)}))
    assert not texts_vary(alone.astype(float).assign(z="ICU"))


@pytest.mark.parametrize(
    "cells", [["3", ""], ["3", "2.5"], [str(10**17), ""], ["-0.0"]], ids=str
)
def test_texts_of_whole_floats_are_found(cells):
    """To make strings of a column later gives "3" without a gap, and "3.0" with one."""
    assert texts_vary(read(cells).astype("string"))


def test_what_takes_texts_alone_may_get_any():
    for step in (HashingVectorizer(), FeatureHasher(input_type="string")):
        assert not texts_vary([["3"], ["ICU"]], step)
        assert not texts_vary(np.array(["3", "ICU"]), step)
        with pytest.raises((AttributeError, TypeError)):
            step.transform([[3], [4]])
    assert texts_vary([{"ward": "3"}], FeatureHasher())
    assert not texts_vary(["3", "a text"])
    assert not texts_vary([np.zeros((2, 2)), "a text"])


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
    "beside others": (read(WARDS, "ICU").assign(n=1.0), BESIDE),
    "mappings": (read(WARDS, "ICU").to_dict("records"), HASHER),
    "rows": (read(WARDS, "ICU").to_numpy().tolist(), NAMELESS),
}


@pytest.mark.parametrize(("X", "step"), VARYING.values(), ids=VARYING)
def test_a_ledger_refuses_texts_that_may_be_numbers(fit, X, step):
    with pytest.raises(PrivacyError, match=r"types of columns.*dtype='string' in read"):
        fit(X, step)
    assert fit.ledger.history == []


def test_a_ledger_takes_texts_that_were_asked_for(fit):
    for table in (read(WARDS, "ICU", dtype="string"), read(["A1", "B2"] * 10)):
        assert fit(table, KNOWN)
    assert fit(["a text", "3"] * 10, HashingVectorizer(n_features=8)) == 3
    wards = {"kind": "category", "categories": ["1", "2", "3", "ICU"]}
    assert fit(read(WARDS, "ICU"), PublicColumns({"x": wards})) == 4
