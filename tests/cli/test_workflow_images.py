"""The workflow of van der Veen et al. 2018, section 3, for networks on images."""

import json
import shutil
from argparse import ArgumentParser

import pytest

from privfeat import persistence
from privfeat.cli import workflow

pytest.importorskip("jax_privacy")
pytest.importorskip("jinja2")
WORKFLOW = (
    "--model mlp --image-size 8 --epsilon 1 --n 24 --n-fits 10 --batch 12 --epochs 1 "
    "--test-is-public --learning-rate 0.01 --set accounting=rdp --set n_iter=2 --quiet"
).split()


@pytest.mark.slow
def test_a_workflow_of_a_network_makes_everything_and_goes_on(run, folder, tmp_path):
    results, data = tmp_path / "results", folder
    given = ("workflow", results, "--data", data, *WORKFLOW)
    calibration = ("--calibration", data / "test")
    status, _, err = run(*given, *calibration)
    assert status == 0, err
    names = {path.name for path in results.iterdir()}
    texts = {f"{name}.txt" for name in ("plan", "sanity", "audit", "train")}
    made = {"audit.json", "calibration.json", "card.md", "model", "report.html"}
    assert names == texts | made | {"workflow.json"}
    assert "more data: 2 times" in (results / "plan.txt").read_text()
    assert "random labels: pass" in (results / "sanity.txt").read_text()
    assert "no fault found" in (results / "audit.txt").read_text()
    assert "8 x 8 x 3" in (results / "audit.txt").read_text()
    found = json.loads((results / "calibration.json").read_text())
    assert found["after"]["nll"] <= found["before"]["nll"]
    model = persistence.load(results / "model")
    assert model.privacy_.epsilon <= 1.0
    assert (model.learning_rate, model.expected_batch_size) == (0.01, 12.0)
    assert "Accuracy" in (results / "report.html").read_text()

    (results / "report.html").unlink()
    before = (results / "model" / "model.json").read_bytes()
    status, out, _ = run(*given, *calibration)
    assert status == 0
    assert out.count("done before") == 4
    assert (results / "report.html").exists()
    assert (results / "model" / "model.json").read_bytes() == before


def test_a_workflow_needs_one_kind_of_records(run, folder, features, tmp_path):
    given = ("workflow", tmp_path / "x", *WORKFLOW)
    assert run(*given)[0] == 2
    assert run(*given, "--data", folder, "--train", features)[0] == 2


def test_a_workflow_of_features_refuses_what_is_for_images(
    fails, features, folder, tmp_path
):
    given = ("workflow", tmp_path / "x", "--n", 24)
    error = fails(*given, "--train", features, "--batch", 12)
    assert "--batch is for --data" in error
    assert "--groups is for features" in fails(*given, "--data", folder, "--groups")
    assert not (tmp_path / "x").exists()


def test_a_plan_of_a_network_needs_no_features(run, fails):
    given = "plan --n 1000 --classes 10 --epsilon 1 --epochs 2".split()
    status, out, _ = run(*given, "--batch", 100)
    assert status == 0
    assert "a network by DP-SGD, 2 epochs" in out
    assert "\n         100 " in out
    assert "use DPFC" not in out
    assert "--d must be given" in fails(*given, "--public", "x.h5")


@pytest.mark.slow
def test_sanity_takes_a_network_that_is_not_trained_yet(run):
    network = "sanity --network mlp --image-size 6 --grey --n-users 60 --n-fits 10"
    small = "--n-samples 20 --quiet --set n_iter=2 --set expected_batch_size=20"
    status, out, _ = run(
        *network.split(), *small.split(), "--epsilon", 1, "--accounting", "rdp"
    )
    assert status == 0
    assert "random labels: pass" in out


@pytest.mark.parametrize("option", ["--test", "--calibration"])
@pytest.mark.parametrize("place", ["", "train"])
def test_a_workflow_of_images_refuses_private_images_as_public(
    fails, folder, tmp_path, option, place
):
    given = ("workflow", tmp_path / "x", "--data", folder, *WORKFLOW)
    error = fails(*given, option, folder / place)
    assert f"{option} must hold no file of --data" in error
    assert not (tmp_path / "x" / "workflow.json").exists()


def test_a_workflow_of_images_knows_private_images_by_links(fails, folder, tmp_path):
    """Folders of classes are often links into one store."""
    linked, public = tmp_path / "linked", tmp_path / "public"
    for name in (path.name for path in (folder / "train").iterdir()):
        for root in (linked / "train", public):
            root.mkdir(parents=True, exist_ok=True)
            (root / name).symlink_to(folder / "train" / name)
    given = ("workflow", tmp_path / "x", "--data", linked, *WORKFLOW)
    for place in (public, linked / "train"):
        assert "must hold no file of --data" in fails(*given, "--test", place)


@pytest.mark.parametrize("other", [False, True])
def test_public_images_beside_private_ones_do_not_make_those_public(
    folder, tmp_path, other
):
    """Whoever keeps private images in test/ names public ones by --test."""
    parser = ArgumentParser()
    workflow.add_parser(parser.add_subparsers())
    shutil.copytree(folder / "test", tmp_path / "public")
    named = ["--test", str(tmp_path / "public")] if other else []
    words = ["workflow", str(tmp_path / "x"), "--data", str(folder), *WORKFLOW, *named]
    plan = workflow._of_images(parser.parse_args(words))
    assert ("--test-is-public" in plan.fit) is not other
    assert plan.test == str(tmp_path / "public" if other else folder / "test")
