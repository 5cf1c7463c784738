import os
import shutil

import numpy as np
import pytest

from privfeat import PrivacyLedger, load
from privfeat.cli import main
from privfeat.networks import read_folder
from tests.cli.tiny import train_on as command

pytest.importorskip("flax")
Image = pytest.importorskip("PIL.Image")
pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


@pytest.mark.slow
def test_train_saves_a_model_that_predicts(folder, capsys):
    assert command(folder, "--seed", "1", "--noise-multiplier", "0.6") == 0
    printed = capsys.readouterr().out
    assert "test accuracy 1.0000" in printed
    assert "10 x gradient" in printed
    model = load(folder / "model")
    assert model.input_shape_ == (8, 8, 3)
    bright = np.full((1, 8, 8, 3), 200, np.uint8)
    assert model.predict(bright).tolist() == [0]
    assert command(folder) == 1
    assert "Pass --overwrite" in capsys.readouterr().err
    paths = ("--model", str(folder / "model"), "--features", str(folder / "test"))
    assert main(["predict", *paths, "--out", str(folder / "predicted.csv")]) == 0
    assert (folder / "predicted.csv").read_text().startswith("row,class")


@pytest.mark.slow
def test_train_reads_no_test_images_that_nobody_called_public(folder, capsys):
    """Whoever keeps private ones there for `evaluate` sees no exact figure of them."""
    (folder / "test" / "of no class").mkdir()
    assert command(folder) == 1
    assert "test/ must have the classes of train/" in capsys.readouterr().err
    assert command(folder, public=()) == 0
    assert "test accuracy" not in capsys.readouterr().out


@pytest.mark.slow
def test_train_starts_from_a_saved_network(folder, capsys):
    """With parameters of every kind that a line of a shell can hold."""
    settings = {
        "weights": folder / "public", "frozen": "all_but_head", "optimizer": "sgd",
        "momentum": 0.5, "dampening": 0.1, "average_from": 0.5,
        "clip_style": "layerwise", "clip_norm": "{'layers/3': 0.5}",
    }  # fmt: skip
    more = [word for n, v in settings.items() for word in ("--set", f"{n}={v}")]
    public = "--noise-multiplier", "0", "--out", str(folder / "public")
    assert command(folder, *public) == 0
    assert "No privacy" in capsys.readouterr().out
    assert command(folder, *more) == 0
    assert "weights are of a network without privacy" in capsys.readouterr().err
    more[1] = f"weights={folder / 'model'}"
    assert command(folder, *more, "--out", str(folder / "third")) == 0
    assert "without privacy" not in capsys.readouterr().err
    first, second = load(folder / "public"), load(folder / "model")
    assert first.privacy_.epsilon == np.inf > second.privacy_.epsilon
    for name, leaf in first.parameters_.items():
        kept = np.array_equal(leaf, second.parameters_[name])
        assert kept == (not name.startswith("layers/3/"))
    assert second.clip_norm == {"layers/3": 0.5}
    assert second.weights is None
    assert "the weights that the network started from" in second.privacy_.public
    pytest.importorskip("jinja2")
    page = folder / "report.html"
    assert main(["report", str(folder / "model"), "--out", str(page)]) == 0
    told = page.read_text(encoding="utf-8")
    assert "from the input on" not in told
    assert "It started from weights of another training" in told
    assert "weights=weights" in told


def test_train_refuses_what_it_cannot_use(folder, capsys):
    for more, word in (
        (["--set", "no_such=1"], "no_such"),
        (["--set", "epochs=2", "--epochs", "1"], "repeat"),
        (["--data", str(folder / "nothing")], "folder"),
        (["--batch", "1000"], "`privfeat train --batch`"),
        (["--data", str(folder / "train" / "dark")], "classes"),
    ):
        assert command(folder, *more) == 1
        assert word in capsys.readouterr().err
    assert not (folder / "model").exists()


@pytest.mark.parametrize("option", ["--out", "--checkpoints"])
@pytest.mark.parametrize("place", ["train", "train/dark", "test", "classes"])
def test_train_refuses_to_write_among_the_classes(folder, capsys, option, place):
    """What is there at the next call is a class of its fit."""
    data = folder if place != "classes" else folder / "train"
    written = (folder / ("train" if place == "classes" else place)) / "kept"
    assert command(folder, "--data", str(data), option, str(written)) == 1
    assert f"{option} must lie outside the classes" in capsys.readouterr().err
    assert not written.exists()


def test_train_refuses_splits_that_would_pass_for_classes(folder, capsys):
    outside = ("--out", str(folder.parent.parent / "model"))
    assert command(folder, "--data", str(folder.parent), *outside) == 1
    assert "is the name of a split" in capsys.readouterr().err
    (folder / "train").rename(folder / "Training")
    assert command(folder, *outside) == 1
    assert "'Training' is the name of a split" in capsys.readouterr().err
    with pytest.raises(ValueError, match="is the name of a split"):
        read_folder(folder)
    (folder / "Training").rename(folder / "one")
    (folder / "test").rename(folder / "two")
    assert command(folder, *outside) == 1
    assert "same folders in them, such as 'bright'" in capsys.readouterr().err


@pytest.mark.slow
def test_train_names_a_bad_image_and_skips_it(folder, capsys):
    (folder / "train" / "dark" / "3.png").write_text("no image")
    (folder / "train" / "dim").mkdir()
    (folder / "test" / "dim").mkdir()
    assert command(folder) == 1
    assert "train/dark/3.png must be an image" in capsys.readouterr().err
    assert command(folder, "--skip-bad") == 0
    printed = capsys.readouterr().err
    assert "skipped" in printed
    assert "train/dim holds no image that was read. It stays a class" in printed
    assert load(folder / "model").classes_.tolist() == [0, 1, 2]


def test_train_refuses_other_classes_for_the_test_before_it_fits(folder, capsys):
    (folder / "test" / "dim").mkdir()
    assert command(folder) == 1
    assert "but only one has 'dim'" in capsys.readouterr().err
    assert not (folder / "model").exists()


@pytest.mark.parametrize("more", [[], ["--set", "optimizer={1}"]])
def test_train_refuses_what_it_cannot_save_before_it_fits(folder, capsys, more):
    """A folder in Latin-1 took the budget, and no model was saved."""
    for split in ("train", "test"):
        name = "bright" if more else os.fsdecode(b"caf\xe9")
        (folder / split / "bright").rename(folder / split / name)
    ledger = PrivacyLedger(folder / "a.ledger", dataset="a", epsilon=99.0, delta=1e-4)
    given = ["--ledger", str(folder / "a.ledger"), "--dataset", "a", *more]
    assert command(folder, *given) == 1
    wanted = "optimizer must be" if more else "names of classes and parameters must be"
    assert wanted in capsys.readouterr().err
    assert not ledger.history


@pytest.mark.parametrize("which", ["", "bright", "bright/0.png"])
def test_train_refuses_the_training_images_as_test(folder, capsys, which):
    (folder / "test" / which).rename(folder / "unused")
    (folder / "test" / which).symlink_to(folder / "train" / which)
    assert command(folder) == 1
    assert "must not lead to images of" in capsys.readouterr().err
    assert not (folder / "model").exists()


@pytest.mark.slow
def test_train_charges_a_ledger(folder, capsys):
    path = folder / "team.ledger"
    ledger = PrivacyLedger(path, dataset="photos", epsilon=200.0, delta=1e-5)
    assert command(folder, "--ledger", str(path)) == 1
    assert "--dataset must be given together" in capsys.readouterr().err
    kept = ("--checkpoints", str(folder / "kept"))
    assert command(folder, "--ledger", str(path), "--dataset", "photos", *kept) == 0
    assert (folder / "kept" / "10").is_dir()
    printed = capsys.readouterr().err
    assert "DPSGDClassifier: epsilon = " in printed
    assert "at delta = 1e-05 for 10 x gradient; to be charged to 'photos'" in printed
    assert "whose whole budget is epsilon = 200" in printed
    (charge,) = ledger.history
    assert charge.statement == load(folder / "model").privacy_
    assert charge.status == "fitted"
    again = ("--ledger", str(path), "--dataset", "photos", *kept, "--overwrite")
    assert command(folder, *again) == 1
    assert "`privfeat train --restore`" in capsys.readouterr().err
    first = load(folder / "model")
    assert command(folder, *again, "--restore") == 0
    second = load(folder / "model")
    assert len(ledger.history) == 1
    for name, leaf in first.parameters_.items():
        assert np.array_equal(second.parameters_[name], leaf)


@pytest.mark.slow
def test_a_trained_network_has_a_report_and_an_audit(folder, capsys):
    """Full batches, whose accounting is quick."""
    pytest.importorskip("jax_privacy")
    ledger = folder / "team.ledger"
    PrivacyLedger(ledger, dataset="photos", epsilon=200.0, delta=1e-5)
    names = ("--ledger", str(ledger), "--dataset", "photos")
    assert command(folder, "--batch", "24", *names) == 0
    model, audit, page, card = (
        str(folder / name) for name in ("model", "audit.json", "page.html", "card.md")
    )
    few = ("--n-samples", "40", "--n-canaries", "20", "--set", "n_iter=2")
    few += ("--set", "expected_batch_size=40", "--quiet")
    assert main(["audit", "--model", model, *few, "--out", audit]) == 0
    assert (
        "DPSGDClassifier on synthetic rows: 40 x 8 x 8 x 3" in capsys.readouterr().out
    )
    command_line = ["report", model, "--out", page, "--audit", audit, *names]
    command_line += ["--test", str(folder / "test"), "--test-is-public"]
    command_line += ["--card", card]
    assert main(command_line) == 0
    with open(page, encoding="utf-8") as file:
        text = file.read()
    for part in ("DPSGDClassifier with epsilon", "8 x 8 x 3", "<h3>Replay: "):
        assert part in text
    for part in ("24 records", "SelfComposed", "epsilon = 200, delta = 1e-05"):
        assert part in text
    with open(card, encoding="utf-8") as file:
        assert "A network trained by DP-SGD" in file.read()
    measured = ["report", model, "--out", page, "--test-is-public", "--test"]
    other = shutil.copytree(folder / "test", folder / "other")
    sorted(other.iterdir())[0].rename(other / "unknown")
    assert main([*measured, str(other)]) == 1
    assert "must have the classes" in capsys.readouterr().err
    assert main([*measured, audit]) == 1
    assert "must be a folder of images" in capsys.readouterr().err


@pytest.mark.slow
def test_train_protects_users(folder, capsys):
    table = folder / "patients.csv"
    names = [f"train/{name}/{i}.png" for name in ("bright", "dark") for i in range(12)]
    rows = [f"{name},patient {place // 3}" for place, name in enumerate(names)]
    more = ("--groups", str(table), "--max-group-size", "2", "--batch", "4")
    more += ("--set", "local_epochs=2")
    for lines in (
        ["a,b", *rows],
        ["file,user", *rows[1:]],
        ["file,user", *rows, rows[0]],
    ):
        table.write_text("\n".join(lines))
        assert command(folder, *more) == 1
        assert "--groups must" in capsys.readouterr().err
    others = [row.replace("train", "test") for row in rows]  # as for the extractor
    table.write_text("\n".join(["file,user", *others, *reversed(rows)]))
    assert command(folder, "--groups", str(table)) == 1
    assert "--max-group-size must be given together" in capsys.readouterr().err
    assert command(folder, *more) == 0
    statement = load(folder / "model").privacy_
    assert statement.unit == "user"
    assert statement.releases[0].sampling_prob == 4 / 8
    pytest.importorskip("jax_privacy")
    few = "--n-samples 40 --n-canaries 10 --quiet --set n_iter=1 --set verbose=0"
    model = str(folder / "model")
    assert main(["audit", "--model", model, *few.split()]) == 0
    assert "without the user of the longest row" in capsys.readouterr().out


@pytest.mark.slow
def test_train_reads_large_folders_late(folder, plant):
    fits, fit = [], plant.genuine("fit of a network")

    def watched(self, X, y, **options):
        fits.append(type(X).__name__)
        return fit(self, X, y, **options)

    plant("fit of a network", watched)
    few = ("--batch", "24", "--overwrite")
    assert command(folder, *few) == 0
    plant("bytes of images in memory", 24 * 8 * 8 * 3 - 1)
    assert command(folder, *few) == 0
    assert fits == ["ndarray", "FolderImages"]
