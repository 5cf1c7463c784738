"""Whose predictions of texts are: their table must be as it was."""

import csv

import pytest

from privfeat.cli import main
from privfeat_extract.cli import main as extract

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
PERSONS = [(f"p{i}", f"broken leg {i}" if i % 2 else f"fever {i}") for i in range(12)]


def write(path, persons):
    with path.open("w", newline="") as file:
        topics = [("bone" if "leg" in note else "lung",) for _, note in persons]
        rows = [(*row, *topic) for row, topic in zip(persons, topics, strict=True)]
        csv.writer(file).writerows([("who", "note", "topic"), *rows])


@pytest.mark.parametrize("labelled", [True, False])
def test_texts_in_another_order_are_refused(tmp_path, capsys, labelled):
    """Each prediction stood beside another person, under the exit status 0."""
    table, features, model = (tmp_path / name for name in ("t.csv", "t.h5", "m"))
    write(table, PERSONS)
    made = ["--data", table, "--text", "note", "--model", "ngrams", "--quiet"]
    made += ["--model-kwargs", "n_features=8"]
    classes = ["--target", "topic", "--class-names", "bone", "lung"]
    fit = ["--estimator", "DPNearestMean", "--epsilon", "9", "--quiet"]
    calls = [
        (extract, [*made, *classes, "--out", tmp_path / "train.h5"]),
        (main, ["fit", *fit, "--train", tmp_path / "train.h5", "--out", model]),
        (extract, [*made, *(classes if labelled else ()), "--out", features]),
    ]
    for command, words in calls:
        assert command([*map(str, words)]) == 0
    words = ["--model", model, "--features", f"{features}:train", "--id", "who"]
    words = ["predict", *words, "--of", table, "--out", tmp_path / "out.csv"]
    assert main([*map(str, words)]) == 0
    out = (tmp_path / "out.csv").read_text()
    write(table, PERSONS[::-1])
    capsys.readouterr()
    assert main([*map(str, words)]) == 1
    assert "with the same texts in their order" in capsys.readouterr().err
    assert (tmp_path / "out.csv").read_text() == out
