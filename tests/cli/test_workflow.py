import json

import pytest

from privfeat import PrivacyLedger, persistence

WORKFLOW = "--estimator DPLeastSquares --epsilon 5 --n 240 --n-fits 10 --quiet".split()


def command(folder, features, *more):
    public = f"{features}:test"
    given = ("--train", f"{features}:train", "--test", public, "--test-is-public")
    return ("workflow", folder, *given, "--calibration", public, *WORKFLOW, *more)


@pytest.mark.slow
def test_a_workflow_makes_everything_and_goes_on(run, fails, features, tmp_path):
    pytest.importorskip("jax_privacy")
    pytest.importorskip("jinja2")
    folder = tmp_path / "results"
    assert run(*command(folder, features, "--smallest-noise"))[0] == 0
    names = {path.name for path in folder.iterdir()}
    texts = {f"{name}.txt" for name in ("plan", "sanity", "audit", "fit")}
    made = {"audit.json", "calibration.json", "card.md", "model", "report.html"}
    assert names == texts | made | {"workflow.json"}
    assert "noise of every release" in (folder / "plan.txt").read_text()
    told = (folder / "sanity.txt").read_text()
    assert "random labels: pass" in told
    assert "smallest noise multiplier that passes: " in told
    found = json.loads((folder / "calibration.json").read_text())
    assert found["after"]["nll"] <= found["before"]["nll"]
    assert persistence.load_statement(folder / "model").epsilon == 5.0

    # what was done is not done again, and nothing is spent twice
    (folder / "audit.txt").unlink()
    (folder / "report.html").unlink()
    before = (folder / "model" / "model.json").read_bytes()
    status, out, _ = run(*command(folder, features, "--smallest-noise"))
    assert status == 0
    assert out.count("done before") == 3
    assert (folder / "report.html").exists()
    assert (folder / "model" / "model.json").read_bytes() == before
    assert "with these options" in fails(*command(folder, features))


def test_a_workflow_spends_nothing_where_a_test_fails(
    run, features, tmp_path, fit_is_forbidden
):
    pytest.importorskip("jax_privacy")
    pytest.importorskip("jinja2")

    folder = tmp_path / "results"
    status, out, err = run(*command(folder, features, "--n-fits", 0))
    assert status == 1
    assert "n_fits must be" in err
    assert "--- privfeat sanity" in out
    assert {path.name for path in folder.iterdir()} == {"plan.txt", "workflow.json"}


def test_a_workflow_keeps_no_place_of_a_ledger(
    run, fails, features, tmp_path, fit_is_forbidden
):
    """It may be a URL with a password, and the folder is made to be passed on."""
    pytest.importorskip("jax_privacy")
    pytest.importorskip("jinja2")
    path, folder = tmp_path / "secret.ledger", tmp_path / "results"
    ledger = PrivacyLedger(path, dataset="x", epsilon=9.0, delta=1e-5)
    given = ("--ledger", path, "--dataset", "x", "--n-fits", 0)
    assert run(*command(folder, features, *given))[0] == 1
    text = (folder / "workflow.json").read_text()
    assert "secret" not in text
    assert json.loads(text)["ledger"] == ledger.budget.uid
    assert "with these options" in fails(*command(folder, features))


def test_a_workflow_refuses_what_it_cannot_do(fails, features, tmp_path):
    pytest.importorskip("jax_privacy")
    pytest.importorskip("jinja2")
    bad = command(tmp_path / "x", features, "--epsilon", "inf")
    assert "--epsilon must be finite" in fails(*bad)
    assert not (tmp_path / "x").exists()
    (tmp_path / "mine.txt").write_text("")
    assert "DIR must be empty" in fails(*command(tmp_path, features))
