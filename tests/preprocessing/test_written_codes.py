"""Codes such as 007, of which readers of tables make 7 unless one record has a letter.

Then a number is refused where such a code is declared, and so is a text that is none of
the categories and reads as one that is a number.
"""

from decimal import Decimal
from io import StringIO

import numpy as np
import pandas as pd
import pytest

from privfeat import DPLeastSquares, PrivacyLedger, PrivatePipeline, PublicColumns
from privfeat.preprocessing.values import outputs_of
from tests.preprocessing.test_values import column, made, objects

CODES = ["007", "7", "+7", "7.", "7.0", "2.10", "2.1", ".5", "1E3", "1000", "-0", "inf"]
DECLARED = [["7", "2.1", "0.5", "1000", "0"], ["007", "2.10", "1E3"], ["7", "007"]]
NEUTRAL = {"unseen": "neutral", "missing": "neutral"}


@pytest.mark.parametrize("categories", DECLARED, ids=str)
@pytest.mark.parametrize("missing", [[], ["7"], ["07"]], ids=str)
@pytest.mark.parametrize("code", CODES)
def test_a_letter_in_one_record_changes_no_other(code, missing, categories):
    """What both tables take, they take alike."""
    said = {"categories": [*categories, "A1"], "missing_values": missing}
    category, features = column("category", **said, **NEUTRAL), []
    for more in ("", "A1\n"):
        values = pd.read_csv(StringIO(f"x\n{code}\n2\n{more}"))["x"].astype(object)
        try:
            features.append(outputs_of(category, values.to_numpy())[:2].tolist())
        except TypeError as error:
            assert "read_table" in str(error)  # noqa: PT017 - one of them may be taken
    assert features[1:] in ([], features[:1])


@pytest.mark.parametrize("number", [7, 7.0, np.int8(7), Decimal(7), 2.1, 12])
def test_numbers_are_refused_where_a_code_is_none(number):
    category = column("category", categories=["007", "A1"], **NEUTRAL)
    assert made(category, "007", "x", None) == [[1, 0], [0, 0], [0, 0]]
    with pytest.raises(TypeError, match="007"):  # of which a reader of all made it
        outputs_of(category, objects("7"))
    with pytest.raises(TypeError, match="codes such as 007, and those of"):
        outputs_of(category, objects(number))


@pytest.mark.parametrize("word", ["True", "TRUE", "false"])
def test_numbers_are_refused_where_a_truth_value_is_declared(word):
    """In an array NumPy makes 1.0 of True, or "True" of it beside a text."""
    category = column("category", categories=[word, "unknown"], **NEUTRAL)
    assert made(category, word, "unknown") == [[1, 0], [0, 1]]
    with pytest.raises(TypeError, match="as they are declared"):
        outputs_of(category, np.array([1.0, 0.0]))


@pytest.mark.parametrize("declared", ["TRUE", "true"])
def test_a_truth_word_in_other_capitals_is_no_other_category(declared):
    """pandas writes True of a column of TRUE and FALSE, unless one has another word."""
    category = column("category", categories=[declared, "unknown"], **NEUTRAL)
    for word in ("True", "TRUE", "true"):
        if word == declared:
            assert made(category, word, "unknown") == [[1, 0], [0, 1]]
        else:
            with pytest.raises(TypeError, match="as they are declared"):
                outputs_of(category, objects(word))


def test_both_ways_of_a_truth_word_may_be_declared():
    both = column("category", categories=["TRUE", "True"], **NEUTRAL)
    assert made(both, "TRUE", "True", "no") == [[1, 0], [0, 1], [0, 0]]


def test_a_text_is_no_number_that_is_declared():
    category = column("category", categories=[7, "A1"], **NEUTRAL)
    assert made(category, "7", 7, "7.0", "8") == [[1, 0]] * 3 + [[0, 0]]
    with pytest.raises(TypeError, match="read_table"):
        outputs_of(category, objects("007"))


@pytest.mark.parametrize("kind", ["category", "boolean"])
def test_codes_of_missing_values_are_compared_as_texts_too(kind):
    more = {"categories": ["0", "1"]} if kind == "category" else {}
    codes = column(kind, missing_values=["00"], missing="neutral", **more)
    assert made(codes, "00") == [[0.0] * len(codes.outputs)]
    with pytest.raises(TypeError, match="must hold"):
        outputs_of(codes, np.array([0, 1]))


def test_a_word_for_what_is_missing_makes_no_code():
    """float("NaN") is a number to Python, and no category to anyone."""
    category = column("category", categories=[1, 2], missing_values=["NaN"], **NEUTRAL)
    assert made(category, 1, "NaN") == [[1, 0], [0, 0]]


def test_a_fit_is_refused_before_its_charge(tmp_path):
    said = {"kind": "category", "categories": ["007", "A1"], "unseen": "neutral"}
    ledger = PrivacyLedger(tmp_path / "l", dataset="d", epsilon=9.0, delta=1e-5)
    clf = DPLeastSquares(classes=[0, 1], center=False)
    model = PrivatePipeline(
        [("columns", PublicColumns({"code": said})), ("clf", clf)], ledger=ledger
    )
    with pytest.raises(TypeError, match="read_table"):
        model.fit(pd.DataFrame({"code": [7] * 20}), [0, 1] * 10)
    assert ledger.history == []
