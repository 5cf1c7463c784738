"""The recipe of Kurakin et al. 2022, section 3.3, as a command."""

import json
import shutil

import pytest

from privfeat import PrivacyLedger, persistence
from tests.audited import ROOT
from tests.cli.test_statuses import FIELDS, fields_of

SMALL = (
    "--model mlp --image-size 8 --n 24 --batch 12 --epochs 2 --epsilon 8 --quiet "
    "--learning-rates 0.1 0.3 --clip-norms 0.1 1 --tolerance 0.1"
).split()


@pytest.fixture
def private(folder, tmp_path_factory):
    """Images that are private, beside the public ones of the fixture folder."""
    return shutil.copytree(folder, tmp_path_factory.mktemp("private") / "images")


@pytest.mark.slow
def test_recipe_tries_on_public_images_and_trains_on_private_ones(
    run, folder, private, tmp_path_factory
):
    place = tmp_path_factory.mktemp("recipe")
    ledger = PrivacyLedger(place / "x", dataset="x", epsilon=9.0, delta=1e-5)
    charged = ("--ledger", place / "x", "--dataset", "x", "--data", private)
    command = ("recipe", place / "found", "--public", folder, *SMALL, *charged)
    status, out, _ = run(*command)
    assert status == 0
    lines = out.splitlines()
    steps = [line.split("  ")[0] for line in lines]
    assert steps[1:12] == [
        *["no clipping"] * 2,
        *["clipping"] * 2,
        *["noise"] * 5,
        *["same product"] * 2,
    ]
    assert sum("<- chosen" in line for line in lines) == 1
    (train,) = (line for line in lines if line.startswith("privfeat train "))
    assert "--set optimizer=heavy_ball" in train
    model = persistence.load(place / "found" / "model")
    assert f"--clip-norm {model.clip_norm:.6g}" in train
    assert f"--learning-rate {model.learning_rate:.6g}" in train
    assert model.privacy_.epsilon <= 8.0
    assert len(ledger.history) == 1
    # nothing is tried, trained or charged twice
    kept = (place / "found" / "recipe.json").read_bytes()
    found = json.loads(run(*command, "--json")[1])
    assert len(found["trials"]) == 11
    assert fields_of(found, FIELDS["recipe"]) == FIELDS["recipe"]
    assert not found["tuned_on_private_records"]
    assert (place / "found" / "recipe.json").read_bytes() == kept
    assert len(ledger.history) == 1


@pytest.mark.slow
def test_recipe_on_private_records_says_so_and_trains_nothing(
    run, private, tmp_path_factory
):
    place = tmp_path_factory.mktemp("recipe") / "found"
    given = ("--tune-on-private-records", "--data", private)
    status, out, err = run("recipe", place, *given, *SMALL)
    assert status == 0
    assert "NOT PRIVATE: these settings were chosen on the private records" in err
    assert "train with it" not in out  # its statement would not cover the choice
    assert "NOT PRIVATE" in out
    assert {path.name for path in place.iterdir()} == {"recipe.json"}


def test_recipe_asks_whose_records_it_may_try_on(run, fails, private, tmp_path):
    status, _, err = run("recipe", tmp_path / "x", "--data", private, *SMALL)
    assert status == 2
    assert "--public --tune-on-private-records is required" in err
    own = ("recipe", tmp_path / "x", "--public", private, "--data", private)
    assert "--public must hold no file of --data" in fails(*own, *SMALL)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("place", ["test/dark/0.png", "train/dark", "."])
def test_recipe_notices_links_to_private_images(
    fails, private, folder, tmp_path, place
):
    (folder / "train" / "dark" / "other.png").symlink_to(private / place)
    (folder / "train" / "dark" / "lost.png").symlink_to(folder / "nowhere")
    (private / "lost.png").symlink_to(private / "nowhere")
    (private / "again").symlink_to(private)
    given = ("recipe", tmp_path / "x", "--public", folder, "--data", private)
    assert "--public must hold no file of --data" in fails(*given, *SMALL)


@pytest.mark.slow
def test_recipe_says_that_other_values_should_be_tried(run, folder, plant, tmp_path):
    plant("fit on public records", lambda fits, name, _: fits._known.update(
        {name: [0.9 if "no clipping" in name else 0.2]}
    ))  # fmt: skip
    status, out, _ = run("recipe", tmp_path / "x", "--public", folder, *SMALL)
    assert status == 0
    assert "warning: without clipping, the best rate is the smallest" in out
    assert "warning: without noise, every clip norm costs more" in out


@pytest.mark.parametrize("name", ["epsilon", "learning_rate", "clip_norm"])
def test_recipe_refuses_settings_that_training_refuses(fails, folder, tmp_path, name):
    """It tried for hours before."""
    given = ("recipe", tmp_path / "x", "--public", folder, *SMALL)
    assert f"got {name}=0.5" in fails(*given, "--set", f"{name}=0.5")
    assert not (tmp_path / "x").exists()


def test_recipe_charges_nothing_for_trials(fails, private, folder, tmp_path):
    charged = ("--ledger", tmp_path / "ledger", "--dataset", "x", *SMALL)
    given = ("recipe", tmp_path / "x", *charged)
    assert "--ledger must go with --data" in fails(*given, "--public", folder)
    alone = ("--tune-on-private-records", "--data", private)
    assert "without --ledger" in fails(*given, *alone)
    assert "must go with --data" in fails(
        *given[:2], "--tune-on-private-records", *SMALL
    )


@pytest.mark.slow
def test_recipe_takes_features_to_try_on(run, fails, features, private, tmp_path):
    given = ("recipe", tmp_path / "found", "--public", features, *SMALL)
    status, out, _ = run(*given)
    assert status == 0
    assert "privfeat train" not in out
    assert "must hold images" in fails(*given, "--data", private)


def test_help_names_what_the_guide_names():
    guide = (ROOT / "docs" / "guides" / "networks.md").read_text(encoding="utf-8")
    assert "privfeat recipe " in guide
    assert "--tune-on-private-records" in guide
