import io
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

import privfeat
from privfeat import PrivacyLedger
from privfeat.cli import main
from privfeat.data import write_features
from privfeat.metrics.files import load_evaluation
from privfeat.persistence import ModelFileError
from tests.cli.tiny import CLASS_NAMES, fit_arguments, make_split, train_on


@pytest.fixture
def own_model(run, features, tmp_path):
    """Return the folder of a model that a test may write into."""
    folder = tmp_path / "model"
    assert run(*fit_arguments(features, folder, "--quiet"))[0] == 0
    return folder


def evaluate(model, features, *more):
    return ("evaluate", "--model", model, "--test", features, *more)


def test_evaluate_prints_figures_and_writes_them_beside_the_model(
    run, own_model, features
):
    status, out, err = run(*evaluate(own_model, features, "--epsilon", 8))
    assert (status, err) == (0, "")
    for part in ("accuracy  ", "ece  ", "Recall by class:\n  ant  ", "epsilon = 8"):
        assert part in out
    assert out.endswith(f"{own_model / 'evaluation.json'} written\n")
    found, test = load_evaluation(own_model)
    assert test == "tiny.h5"
    assert found.privacy.epsilon == 8
    assert found.accuracy.low > 0.5


def test_evaluate_prints_json_for_programs(run, own_model, features):
    status, out, err = run(*evaluate(own_model, features, "--json", "--no-scores"))
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert found["privacy"]["epsilon"] == 1.0
    assert found["figures"]["roc_auc"] is found["figures"]["ece"] is None
    assert len(found["figures"]["recall"]["value"]) == 4


def test_evaluate_charges_the_ledger_of_the_test_records(
    run, fails, own_model, features, tmp_path
):
    path = tmp_path / "x.ledger"
    ledger = PrivacyLedger(path, dataset="test", epsilon=1.0, delta=1e-5)
    whose = ("--ledger", path, "--dataset", "test", "--epsilon", 0.8)
    assert run(*evaluate(own_model, features, *whose))[0] == 0
    (charge,) = ledger.history
    assert charge.estimator == "PrivateEvaluation"
    again = evaluate(own_model, features, *whose)
    assert "Pass --overwrite to replace it" in fails(*again)
    before = (own_model / "evaluation.json").read_bytes()
    assert "must cost at most epsilon = 1.0" in fails(*again, "--overwrite")
    assert (own_model / "evaluation.json").read_bytes() == before
    assert len(ledger.history) == 1


def test_evaluate_protects_users(run, fails, own_model, tmp_path):
    path = tmp_path / "grouped.h5"
    splits = {"test": (*make_split(60, 1), np.arange(60) // 2)}
    write_features(path, splits, class_names=CLASS_NAMES)
    assert "names the user of each row" in fails(*evaluate(own_model, path))
    table = ("--groups", "patients.csv", "--max-group-size", 2)
    assert "is for folders of images" in fails(*evaluate(own_model, path, *table))
    users = ("--groups", "--max-group-size", 2)
    status, _, err = run(*evaluate(own_model, path, *users))
    assert (status, err) == (0, "")
    assert load_evaluation(own_model)[0].privacy.unit == "user"
    assert run(*evaluate(own_model, path, "--no-groups", "--overwrite"))[::2] == (0, "")


def test_evaluate_refuses_a_split_called_train(run, fails, own_model, features):
    asked = evaluate(own_model, f"{features}:train")
    assert "must not be the training split" in fails(*asked)
    assert run(*asked, "--unseen")[0] == 0


def test_evaluate_of_a_regressor_needs_bounds(run, fails, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2000, 3)).astype(np.float32)
    path, folder = tmp_path / "r.h5", tmp_path / "model"
    y = np.rint(4 * X[:, 0]).astype(np.int64)
    write_features(path, {"test": (X, y)})
    reg = privfeat.DPLeastSquaresRegressor(epsilon=8, target_bounds=(-4, 4))
    privfeat.save(reg.fit(X, y), folder)
    unbounded = tmp_path / "unbounded"
    with pytest.warns(privfeat.PrivacyWarning, match="target_bounds=None"):
        privfeat.save(privfeat.DPLeastSquaresRegressor(epsilon=8).fit(X, y), unbounded)
    assert "target_bounds must be" in fails(*evaluate(unbounded, path))
    asked = evaluate(folder, path, "--target-bounds", "-4", "4", "--epsilon", 4)
    status, out, _ = run(*asked)
    assert status == 0
    assert "r2 " in out
    found, _ = load_evaluation(folder)
    assert found.target_bounds == (-4.0, 4.0)
    assert 0.8 < found.r2.low < found.r2.high
    page, card = tmp_path / "page.html", tmp_path / "card.md"
    assert run("report", folder, "--out", page, "--card", card)[0] == 0
    assert "R squared" in page.read_text(encoding="utf-8")
    assert '"type": "r_squared"' in card.read_text(encoding="utf-8")


@pytest.mark.slow
def test_report_shows_private_figures_where_there_are_any(
    run, own_model, features, tmp_path
):
    page, card = tmp_path / "page.html", tmp_path / "card.md"
    assert run(*evaluate(own_model, features, "--epsilon", 8))[0] == 0
    report = ("report", own_model, "--out", page, "--card", card)
    assert run(*report)[0] == 0
    text = page.read_text(encoding="utf-8")
    found, _ = load_evaluation(own_model)
    assert "<h2>Accuracy on private test records</h2>" in text
    assert "on tiny.h5, with noise" in text
    assert f"{found.accuracy.low:.4g}" in text
    assert f'<td role="cell">{CLASS_NAMES[1]}</td>' in text
    assert "<h2>Accuracy on public test records</h2>" not in text
    assert "## Accuracy on private test records" in card.read_text(encoding="utf-8")
    both = ("--test", features, "--test-is-public")
    assert run(*report, *both)[0] == 0
    text = page.read_text(encoding="utf-8")
    assert "<h2>Accuracy on private test records</h2>" in text
    assert "<h2>Accuracy on public test records</h2>" in text


def test_report_says_that_seeded_figures_are_not_private(
    run, own_model, features, tmp_path
):
    page, card = tmp_path / "page.html", tmp_path / "card.md"
    assert run(*evaluate(own_model, features, "--seed", 1))[0] == 0
    assert run("report", own_model, "--out", page, "--card", card)[0] == 0
    for path in (page, card):
        assert "These figures are not private" in path.read_text(encoding="utf-8")


def test_report_refuses_the_evaluation_of_another_model(
    run, fails, own_model, features, tmp_path
):
    assert run(*evaluate(own_model, features))[0] == 0
    again = fit_arguments(features, own_model, "--quiet", "--overwrite")
    assert run(*again)[0] == 0
    error = fails("report", own_model, "--out", tmp_path / "page.html")
    assert "is of another model than is there now" in error
    Path(own_model, "evaluation.json").unlink()
    assert run("report", own_model, "--out", tmp_path / "page.html")[0] == 0


def test_evaluate_shows_what_it_found_if_the_disk_is_full(
    run, own_model, features, plant
):
    def full(path, content):
        raise OSError(28, "No space left on device", str(path))

    plant("write of an evaluation", full)
    status, out, err = run(*evaluate(own_model, features))
    assert status == 1
    assert "accuracy" in out
    assert "(No space left on device). What it found is printed above." in err


def test_evaluate_keeps_what_it_found_whatever_the_test_file_is_called(
    run, own_model, features, tmp_path
):
    odd = tmp_path / os.fsdecode(b"caf\xe9.h5")
    odd.write_bytes(Path(features).read_bytes())
    assert run(*evaluate(own_model, odd))[0] == 0
    assert load_evaluation(own_model)[1] == "caf?.h5"


def test_evaluate_shows_what_it_found_if_the_model_is_another_one_now(
    run, own_model, features, plant
):
    def changed(path, content):
        raise ModelFileError("no model is there.")

    plant("write of an evaluation", changed)
    status, out, err = run(*evaluate(own_model, features))
    assert (status, "accuracy" in out) == (1, True)
    assert "(no model is there). What it found is printed above." in err


def test_evaluate_is_refused_while_another_command_evaluates(
    run, fails, own_model, features
):
    """Both would be charged, and one would replace what the other found."""
    with FileLock(own_model / ".evaluation.lock"):
        error = fails(*evaluate(own_model, features))
    assert "by one command at a time" in error
    assert error.rstrip().endswith("Wait for it. Nothing was charged.")
    assert run(*evaluate(own_model, features))[0] == 0
    assert not (own_model / ".evaluation.lock").exists()


def test_evaluate_says_that_a_refusal_was_not_charged(
    fails, own_model, features, tmp_path, capsys
):
    path = tmp_path / "test.ledger"
    PrivacyLedger(path, dataset="test", epsilon=1.0, delta=1e-5)
    capsys.readouterr()
    ledger = ("--ledger", path, "--dataset", "test")
    error = fails(*evaluate(own_model, features, *ledger, "--epsilon", 2))
    assert error.rstrip().endswith("Nothing was charged.")
    error = fails(*evaluate(own_model, features, *ledger, "--confidence", 2))
    assert error.rstrip().endswith("Nothing was charged.")


def test_evaluate_says_on_ctrl_c_that_nothing_was_charged(
    run, own_model, features, tmp_path, plant
):
    path = tmp_path / "test.ledger"
    PrivacyLedger(path, dataset="test", epsilon=1.0, delta=1e-5)

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    plant("read of lazy features", interrupt)
    ledger = ("--ledger", path, "--dataset", "test", "--epsilon", 0.5)
    status, out, err = run(*evaluate(own_model, features, *ledger))
    assert (status, out) == (130, "")
    assert err.endswith("privfeat: interrupted. Nothing was charged.\n")


def test_evaluate_keeps_what_it_found_if_it_cannot_be_shown(
    own_model, features, monkeypatch
):
    """By a pipe that nobody reads, say; the budget is spent."""
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    stdout.close()
    monkeypatch.setattr(sys, "stdout", stdout)
    assert main([*map(str, evaluate(own_model, features))]) == 1
    assert (own_model / "evaluation.json").exists()


@pytest.mark.slow
def test_evaluate_of_a_network_takes_a_folder_of_images(run, fails, folder, capsys):
    pytest.importorskip("flax")
    assert train_on(folder, "--quiet") == 0
    capsys.readouterr()
    asked = ("evaluate", "--model", folder / "model", "--test", folder / "test")
    users = ("--groups", "--max-group-size", 2)
    assert "--groups must name a FILE.csv for a folder" in fails(*asked, *users)
    status, out, err = run(*asked, "--epsilon", 20, "--delta", 1e-5)
    assert (status, err) == (0, "")
    assert "Recall by class:\n  bright" in out
    found, test = load_evaluation(folder / "model")
    assert (test, found.roc_auc is not None) == ("test", True)
    assert "one record at a time" not in str(found.privacy)
    names = sorted(path.relative_to(folder) for path in folder.glob("test/*/*.png"))
    table = folder / "patients.csv"
    lines = [f"{name.as_posix()},p{i // 2}" for i, name in enumerate(names)]
    table.write_text("\n".join(["file,user", *lines]))
    by_user = (*asked, "--overwrite", "--groups", table)
    assert "together with --max-group-size" in fails(*by_user)
    assert run(*by_user, "--max-group-size", 2)[::2] == (0, "")
    assert load_evaluation(folder / "model")[0].privacy.unit == "user"
    table.write_text("\n".join(["file,user", *lines[1:]]))
    assert "has none for test/" in fails(*by_user, "--max-group-size", 2)
