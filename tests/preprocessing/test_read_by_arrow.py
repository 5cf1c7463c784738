"""What pyarrow reads otherwise where a column has a word."""

import io

import numpy as np
import pyarrow.csv
import pytest

from privfeat.preprocessing.declaration import parse_columns
from privfeat.preprocessing.values import outputs_of
from privfeat.selection.folds import HashKFold

MARKS = {"missing": "indicator", "unseen": "neutral"}


@pytest.mark.parametrize(
    ("categories", "texts"),
    [
        (["1", "2"], ["NA", "1", "2"]),
        (["0x10", "0x20"], ["0x10", "0x20"]),
        (["16", "32"], ["0x10", "0x20"]),
        (["-1", "3"], ["0xffffffffffffffff", "3"]),
        (["1", "2"], ["+nan", "NAN", "1"]),
        (["NA", "EU"], ["NA", "1"]),
    ],
    ids=str,
)
def test_what_arrow_reads_otherwise_beside_a_word_is_one_or_refused(categories, texts):
    """It makes gaps of NA, and 16 of 0x10, in columns of numbers alone."""
    how = {"kind": "category", "categories": categories, **MARKS}
    (declared,) = parse_columns({"x": how})

    def read(*more):
        lines = "\n".join(["x,n", *(f"{text},1" for text in (*texts, *more))])
        table = pyarrow.csv.read_csv(io.BytesIO(lines.encode()))
        try:
            return outputs_of(
                declared, np.array(table["x"].to_pylist(), object)
            ).tolist()
        except (TypeError, ValueError):
            return None

    alone, beside = read(), read("word")
    assert alone is None or beside is None or alone == beside[: len(texts)]
    if "NA" in texts[0] and "NA" not in categories:
        assert alone is not None
        assert beside is not None


def test_an_id_in_hexadecimal_digits_is_the_number_that_arrow_makes_of_it():
    folds = HashKFold(3, key=7)
    texts = [f"0x{number:x}" for number in range(40, 60)]
    one, two = (
        [test.tolist() for _, test in folds.split(np.zeros((20, 1)), groups=ids)]
        for ids in (texts, [int(text, 16) for text in texts])
    )
    assert one == two
    with pytest.raises(ValueError, match="groups must name"):
        next(folds.split(np.zeros((2, 1)), groups=["0xffffffffffffffff", "7"]))
