import json

import pytest


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--precision", "bfloat16")])
def test_benchmark_measures_two_loops_with_the_same_features(
    tmp_path, monkeypatch, capsys, options
):
    for name in ("timm", "PIL.Image"):
        pytest.importorskip(name)
    import extraction

    out = tmp_path / "speed.json"
    argv = ["--model", "test_resnet", "--crop", "32", "--images", "8", "--workers", "0"]
    argv += ["--rounds", "2", "--batch-size", "3", "--out", str(out), *options]
    monkeypatch.setattr("sys.argv", ["extraction.py", *argv])
    extraction.main()
    assert "| CPU time" in capsys.readouterr().out
    found = json.loads(out.read_text())
    assert set(found["ratio"]) == {"wall time", "CPU time"}
    assert all(ratio > 0 for ratio in found["ratio"].values())
    assert [len(t) for t in found["seconds"]["CPU time"].values()] == [2, 2]
