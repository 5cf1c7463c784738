"""Fine-tuning with frozen groups, batches and epochs, at the smallest sizes."""

import json

import frozen
import pytest

import privfeat
from privfeat.networks.images.records import read_folder

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


@pytest.fixture
def parsed(monkeypatch):
    def parse(*words):
        monkeypatch.setattr("sys.argv", ["frozen.py", *map(str, words)])
        return frozen.parse()

    return parse


def test_defaults_are_those_of_the_paper(parsed):
    """Kurakin et al. 2022, Table 7 and section 3.6."""
    args = parsed("images", "--weights", "public.safetensors")
    found = frozen.settings(args, "3", 70, 65_536, 1_281_167)
    assert found["frozen"] == 3
    assert found["weights"] == args.weights
    assert (found["epsilon"], found["delta"]) == (10.0, 1e-6)
    assert (found["optimizer"], found["schedule"]) == ("nesterov", "cosine")
    assert (found["warmup_steps"], found["weight_decay"]) == (20, 1e-4)
    assert privfeat.DPSGDClassifier(**found).clip_norm == 1.0
    assert 7.68 in args.rates
    scratch = frozen.settings(args, frozen.SCRATCH, 70, 65_536, 1_281_167)
    assert not {"weights", "frozen"} & {*scratch}
    assert frozen.settings(args, "0", 70, 4096, 50_000)["frozen"] == ()


def test_weights_are_asked_for_before_anything_is_read(parsed, capsys):
    with pytest.raises(SystemExit):
        parsed("images")
    assert "--weights is missing" in capsys.readouterr().err
    assert parsed("images", "--frozen", frozen.SCRATCH).weights is None


def test_every_cell_is_fitted_and_kept(images, tmp_path, monkeypatch, capsys):
    X, y = read_folder(images / "train", size=4)[:2]
    how = {"model": "mlp", "noise_multiplier": 0.0, "epochs": 1}
    public = privfeat.DPSGDClassifier(expected_batch_size=8, classes=range(2), **how)
    privfeat.save(public.fit(X, y), tmp_path / "public")
    out = tmp_path / "frozen.json"
    words = ["frozen.py", images, "--weights", tmp_path / "public", "--size", 4]
    words += ["--records", 16, "--model", "mlp", "--epochs", 1, "--batches", 8]
    words += ["--frozen", frozen.SCRATCH, "all_but_head", "--epsilon", 8, "--out", out]
    monkeypatch.setattr("sys.argv", [*map(str, words)])
    frozen.main()
    kept = json.loads(out.read_text())
    cells = kept["cells"]
    assert list(cells) == [
        "from scratch, 1 epochs, batch 8",
        "all_but_head, 1 epochs, batch 8",
    ]
    for cell in cells.values():
        assert list(cell["accuracies"]) == ["1.92", "7.68"]
        assert cell["noise"] > 0.3
    assert kept["tables"]["frozen: all_but_head"]["rows"][0][0] == "1"
    assert "| all_but_head: epochs, by batch" in capsys.readouterr().out
