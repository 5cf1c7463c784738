"""The bounds on gradients that are tried beside the default."""

import numpy as np
import pytest

from privfeat.data import write_features


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
def test_each_bound_stands_beside_the_default(tmp_path, monkeypatch, capsys):
    import default_clip

    rng = np.random.default_rng(0)
    y = np.tile([0, 1], 60)
    X = np.eye(2, 4, dtype=np.float32)[y] + rng.normal(0, 0.1, (120, 4))
    path = tmp_path / "small.h5"
    split = X.astype(np.float32), y
    write_features(path, {"train": split}, class_names=["a", "b"])
    given = [str(path), "--epsilons", "8", "--bounds", "0.75", "1", "--repeats", "2"]
    given += ["--out", str(tmp_path / "out.json")]
    monkeypatch.setattr("sys.argv", ["default_clip", *given])
    default_clip.main()
    printed = capsys.readouterr().out
    assert "DPFC small 8 " in printed
    assert printed.count("(+") + printed.count("(-") == 4  # of 1 alone, printed twice
