"""The benchmark of sparse rows, of a few texts."""

import json
import sys

import numpy as np
import pytest

sparse_rows = pytest.importorskip("sparse_rows")


def test_sparse_rows_measures_both_fits(monkeypatch, tmp_path, capsys):
    out = tmp_path / "sparse.json"
    options = ["--size", "60", "2100", "3", "--words", "20", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["sparse_rows.py", *options])
    sparse_rows.main()
    results = json.loads(out.read_text())["results"]
    assert [one["shape"] for one in results] == [[60, 2100], [60, 2000]]
    assert capsys.readouterr().out.count("| yes ") == 2


def test_texts_have_a_few_of_many_words_each():
    X, y = sparse_rows.texts(50, 300, 4, 20)
    assert X.shape == (50, 300)
    assert 0 < X.nnz <= 1000
    np.testing.assert_allclose(X.multiply(X).sum(axis=1), 1.0)
    assert set(y.tolist()) <= set(range(4))
