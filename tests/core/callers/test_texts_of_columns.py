"""A ledger takes numbers alone, or texts alone, before a step."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from privfeat import DPLeastSquares, PrivacyLedger, PrivatePipeline, PublicColumns
from privfeat.core.callers.forms import are_texts, form_varies
from privfeat.core.callers.stateless import learns
from privfeat.exceptions import PrivacyError


@pytest.fixture
def fit(tmp_path):
    ledger = PrivacyLedger(tmp_path / "l", dataset="d", epsilon=9.0, delta=1e-5)

    def fitted(X, *steps):
        last = DPLeastSquares(classes=[0, 1], center=False, ledger=ledger)
        make_pipeline(*steps, last).fit(X, np.arange(len(X)) % 2)
        return len(ledger.history)

    fitted.ledger = ledger
    return fitted


WARDS = pd.DataFrame({"x": ["1", "2", "ICU"] * 10})
ENCODER = OneHotEncoder(sparse_output=False, handle_unknown="ignore")
KNOWN = FrozenEstimator(ENCODER.fit(WARDS))
NAMELESS = FrozenEstimator(clone(ENCODER).fit(WARDS.to_numpy()))
VARYING = {
    "a table": (WARDS, KNOWN),
    "strings": (WARDS.astype("string"), KNOWN),
    "beside numbers": (
        WARDS.assign(n=1.0),
        ColumnTransformer([("x", KNOWN, ["x"])], sparse_threshold=0),
    ),
    "mappings": (WARDS.to_dict("records"), FrozenEstimator(FeatureHasher(8))),
    "rows": (WARDS.to_numpy().tolist(), NAMELESS),
    "objects": (WARDS.to_numpy(object), NAMELESS),
}


@pytest.mark.parametrize(("X", "step"), VARYING.values(), ids=VARYING)
def test_a_ledger_refuses_texts_that_may_be_numbers(fit, X, step):
    with pytest.raises(PrivacyError, match=r"types of columns.*texts alone"):
        fit(X, step)
    assert fit.ledger.history == []


def test_a_ledger_takes_texts_alone_and_declared_columns(fit):
    texts = HashingVectorizer(n_features=8)
    assert fit(["a text", "3"] * 10, texts) == 1
    assert fit(WARDS["x"], texts) == 2
    wards = {"kind": "category", "categories": ["1", "2", "3", "ICU"]}
    assert fit(WARDS, PublicColumns({"x": wards})) == 3


def test_texts_are_one_a_record():
    for texts in (["3", "a"], ("a",), np.array(["3", "a"]), np.array(["a", "b"], "O")):
        assert are_texts(texts)
        assert not form_varies(texts)
        assert form_varies(texts, targets=True)
    assert form_varies(WARDS["x"].astype("category"))
    mixed = WARDS.assign(n=1.0), WARDS.astype("category"), WARDS.to_dict("records")
    mixed += (pd.DataFrame({"x": pd.arrays.IntervalArray.from_breaks([0.0, 1.0])}),)
    gap = pd.Series(["a", None])
    for others in (
        ["3", 3],
        [b"3"],
        ["3", b"3"],
        [["a"]],
        [[2, "A"]],
        *(["a text", mark] for mark in ("NA", "null", "None", "NaN", "-nan", "n/a")),
        np.array([["a"]]),
        gap,
        *mixed,
    ):
        assert not are_texts(others)
        assert form_varies(others)


def test_texts_are_hashed_alone():
    words = HashingVectorizer()
    assert not form_varies(["3", "ICU"], words)
    for other in ([["3"], ["ICU"]], ["ICU", "nan"], ["ICU", b"ICU"]):
        assert form_varies(other, words)
    assert not form_varies(np.zeros(3), targets=True)
    assert form_varies(np.zeros(3))


def test_a_column_of_targets_is_of_floats():
    column = pd.Series([0.5, 1.0])
    assert not form_varies(column, targets=True)
    assert form_varies(column.astype(np.float32), targets=True)


@pytest.mark.parametrize("kind", ["dict", "pair", "string"])
def test_a_hasher_of_names_and_values_is_no_known_step(kind):
    """ "3" is a name and 3 a value, and values of one column may cancel."""
    hasher = FeatureHasher(8, input_type=kind)
    assert learns(hasher)
    with pytest.raises(TypeError, match="PublicColumns, or HashingVectorizer"):
        PrivatePipeline([("hash", hasher), ("clf", DPLeastSquares())]).planned(3)


def test_a_zero_has_no_sign():
    """Of "-0" a reader makes 0, unless one number of its column is no whole one."""
    rows = np.array([[0.0, 1.0], [-0.0, 2.0]])
    stored = csr_array((np.array([-0.0]), ([0], [0])), shape=(1, 2))
    for signed in (rows, pd.DataFrame(rows), stored, stored.tolil()):
        assert form_varies(signed)
    for plain in (rows + 0.0, pd.DataFrame(rows) + 0.0, abs(stored)):
        assert not form_varies(plain)
    assert form_varies(rows[:, 0], targets=True)
