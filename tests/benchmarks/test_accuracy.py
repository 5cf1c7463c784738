"""Untuned estimators beside tuned methods, as other scripts write them."""

import json

import numpy as np
import pytest

from privfeat.data import write_features


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
def test_the_best_tuned_method_stands_beside_ours(tmp_path, monkeypatch, capsys):
    import accuracy

    rng = np.random.default_rng(0)
    y = np.tile([0, 1], 60)
    X = np.eye(2, 4, dtype=np.float32)[y] + rng.normal(0, 0.1, (120, 4))
    split = X.astype(np.float32), y
    path = tmp_path / "small.h5"
    write_features(path, {"train": split, "test": split}, class_names=["a", "b"])
    found = {"DP-FC": [0.5, 0.6], "DP-Adam": [0.7, 0.8], "DP-LS": [0.1, 0.2]}
    cells = {k: {"method": k, "epsilon": 8.0, "scores": v} for k, v in found.items()}
    tuned, beside = tmp_path / "tuned.json", tmp_path / "dpsgd.json"
    tuned.write_text(json.dumps({"cells": cells}))
    beside.write_text(json.dumps({"small": {"8": [0.25]}}))
    given = [str(path), "--epsilons", "8", "--repeats", "2", "--baseline"]
    given += ["--estimators", "DPFC", "--tuned", str(tuned)]
    given += ["--beside", f"DP-SGD={beside}", "--out", str(tmp_path / "out.json")]
    monkeypatch.setattr("sys.argv", ["accuracy", *given])
    accuracy.main()
    printed = capsys.readouterr().out
    assert f"| {accuracy.TUNED} | 75.00 ± 5.00" in printed
    assert "| DP-SGD                         | 25.00" in printed
    assert "DPFC recovers" in printed
    assert "nan" not in printed
