"""Pipelines with a step for texts that was fitted before."""

import numpy as np
import pytest
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.frozen import FrozenEstimator

from privfeat import (
    DPLeastSquares,
    DPNearestMean,
    DPRandomizedSearch,
    PrivacyLedger,
    PrivatePipeline,
    save,
)
from privfeat.cli import main
from privfeat.export import export_onnx
from privfeat.preprocessing import DPStandardScaler


@pytest.mark.parametrize(
    ("words", "rows"),
    [
        (CountVectorizer(), ["one two", "two three", "three one"]),
        (DictVectorizer(), [{"a": 1.0}, {"b": 2.0, "c": 1.0}, {"a": 3.0}]),
    ],
)
def test_planned_begins_with_a_frozen_step_that_reads_texts(words, rows):
    clf = DPLeastSquares(classes=[0, 1], center=False)  # the rows are sparse
    steps = [("words", FrozenEstimator(words.fit(rows))), ("clf", clf)]
    model = PrivatePipeline(steps, epsilon=1.0)
    released = model.fit(20 * rows, 20 * [0, 1, 1]).privacy_.releases
    assert model.planned(1).records == released


def test_a_frozen_step_for_texts_after_a_private_one_is_refused_uncharged(
    tmp_path,
):
    X = np.random.default_rng(0).normal(size=(60, 4))
    words = FrozenEstimator(CountVectorizer().fit(["one two"]))
    steps = [("scale", DPStandardScaler(bounds=(-3, 3))), ("words", words)]
    ledger = PrivacyLedger(tmp_path / "l", dataset="d", epsilon=9.0, delta=1e-5)
    clf = DPLeastSquares(classes=[0, 1], center=False)
    model = PrivatePipeline([*steps, ("clf", clf)], epsilon=1.0, ledger=ledger)
    with pytest.raises((AttributeError, TypeError, ValueError)):
        model.fit(X, X[:, 0] > 0)
    assert ledger.history == []


@pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
def test_a_saved_pipeline_of_texts_says_what_it_reads(tmp_path):
    steps = [("hash", HashingVectorizer(n_features=8)), ("clf", DPNearestMean())]
    pipeline = PrivatePipeline(steps).set_params(clf__center=False)
    pipeline.set_params(clf__classes=[0, 1])
    pipeline.fit(["very ill", "healthy"] * 200, [0, 1] * 200)
    save(pipeline, tmp_path / "model")
    card = tmp_path / "card.md"
    pages = ["--out", str(tmp_path / "r.html"), "--card", str(card)]
    assert main(["report", str(tmp_path / "model"), *pages]) == 0
    assert "The records are texts." in card.read_text()
    assert "arrays of numbers" not in card.read_text()
    with pytest.raises(TypeError, match=r"steps before .* got HashingVectorizer"):
        export_onnx(pipeline, tmp_path / "m.onnx")


@pytest.mark.parametrize(
    ("words", "candidates"),
    [
        (HashingVectorizer(n_features=64), {"stop_words": ["german"]}),
        (HashingVectorizer(n_features=64), {"ngram_range": [(2, 1)]}),
        (HashingVectorizer(n_features=64), {"token_pattern": [r"(\w)(\w)"]}),
        (HashingVectorizer(n_features=64), {"dtype": [str]}),
    ],
)
def test_what_refuses_all_texts_is_found_before_the_charge(tmp_path, words, candidates):
    """A search was charged, and lost with the first candidate that no fit takes."""
    ledger = PrivacyLedger(tmp_path / "l", dataset="d", epsilon=3.0, delta=1e-5)
    clf = DPLeastSquares(classes=[0, 1], center=False)
    model = PrivatePipeline([("words", words), ("clf", clf)])
    grid = {f"words__{name}": values for name, values in candidates.items()}
    search = DPRandomizedSearch(model, grid, epsilon=2.0, mean_runs=2.0, ledger=ledger)
    with pytest.raises(ValueError, match=r"must be|ngram|capturing|support"):
        search.fit(20 * ["one two", "two three"], 20 * [0, 1])
    assert ledger.history == []


def test_planned_opens_no_file():
    """Records that are names of files."""
    words = HashingVectorizer(n_features=32, input="filename")
    steps = [("words", words), ("clf", DPLeastSquares(classes=[0, 1], center=False))]
    assert PrivatePipeline(steps, epsilon=1.0).planned(1).records


@pytest.mark.parametrize(
    "kind", [set, dict.fromkeys, "".join], ids=["set", "mapping", "text"]
)
def test_records_must_stand_in_the_order_of_their_labels(kind):
    """Labels were those of other texts, or the keys were learned."""
    words = HashingVectorizer(n_features=32)
    steps = [("words", words), ("clf", DPLeastSquares(classes=[0, 1], center=False))]
    texts, labels = [f"one {i}" for i in range(20)], [0, 1] * 10
    model = PrivatePipeline(steps, epsilon=1.0).fit(texts, labels)
    for use in (lambda X: model.fit(X, labels), model.predict):
        with pytest.raises(TypeError, match="Pass one record for each label"):
            use(kind(texts))
