"""The benchmark of few records: published methods, and the curves of the package."""

import json

import few
import numpy as np
import pytest
from _results import RESULTS


@pytest.fixture
def separate():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 50)
    return few.unit(np.eye(3, 8)[y] + 0.1 * rng.normal(size=(150, 8))), y


def test_published_methods_find_classes_at_a_large_budget(separate):
    X, y = separate
    rng = np.random.default_rng(0)
    budget = {"epsilon": 50.0, "delta": 1e-5}
    assert np.mean(few.private_means(X, y, 3, budget, rng)(X) == y) > 0.99
    assert np.mean(few.public_prototypes(X, y, X, 3, 5.0, rng)(X) == y) > 0.99


def test_public_prototypes_are_chosen_at_random_without_budget(separate):
    X, y = separate
    rng = np.random.default_rng(0)
    chosen = [few.public_prototypes(X, y, X, 3, 1e-9, rng)(X) for _ in range(20)]
    assert np.mean(np.array(chosen) == y) < 0.6


def test_curves_of_the_package_are_those_of_the_results(monkeypatch, tmp_path):
    files = RESULTS.glob("few_*.json")
    results = [json.loads(file.read_text()) for file in sorted(files)]
    shipped = few.CURVES.read_text()
    monkeypatch.setattr(few, "CURVES", tmp_path / "curves.json")
    few.write_curves(results)
    assert few.CURVES.read_text() == shipped


def test_names_of_classes_stand_beside_fits_without(separate, tmp_path):
    X, y = separate
    np.savez(tmp_path / "n.npz", class_name_features=2.0 * np.eye(3, 8))
    names = few.names_of(tmp_path / "n.npz")
    rng = np.random.default_rng(0)
    found = dict(few.methods(X, y, X, 3, 8.0, rng, names))
    for key in ("DPFC, names 8", "DPLeastSquares, names 8", "names alone 8"):
        assert np.mean(found[key](X) == y) > 0.9, key
    found = dict(few.methods(X, y, X, 3, 8.0, rng, few.head_of(X[::10], y[::10])))
    for key in ("DPFC, head 8", "DPLeastSquares, head 8", "head alone 8"):
        assert np.mean(found[key](X) == y) > 0.9, key
    assert "names alone 8" not in dict(few.methods(X, y, X, 3, 8.0, rng))


def test_tables_have_every_epsilon_and_method(capsys):
    cells = {"DPFC 8": {"1": [0.5]}, "names alone 0.5": {"1": [0.25]}}
    cells["DPFC, head 8"] = {"1": [0.125]}
    few.print_tables({"set": "texts", "shots": [1], "test": cells})
    printed = capsys.readouterr().out
    assert "| 0.5     | names alone     | 25.0 ± 0.0 |" in printed
    assert "| 8       | DPFC, head      | 12.5 ± 0.0 |" in printed
    assert printed.index("names alone") < printed.index("| 8 ")
