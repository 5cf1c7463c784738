import json
import re
import shutil
import subprocess
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

import privfeat
from privfeat import DPSGDClassifier, PrivacyLedger, persistence
from privfeat.persistence.written import DECLARED
from tests.cli.patients import fit
from tests.cli.tiny import fit_arguments


def test_report_writes_page_and_card(run, charged, features, tmp_path):
    """From the fit by a ledger and an audit of its settings to both files."""
    pytest.importorskip("jax_privacy")
    model, ledger = charged
    audit = tmp_path / "audit.json"
    status, out, _ = run(
        *("audit", "--model", model, "--n-samples", 60, "--out", audit, "--quiet")
    )
    assert status == 0
    assert "DPLeastSquares on synthetic rows: 60 x 5, 4 classes" in out
    assert f"{audit} written" in out
    results = json.loads(audit.read_text())
    page, card = tmp_path / "report.html", tmp_path / "README.md"
    status, out, err = run(
        *("report", model, "--out", page, "--test", features, "--test-is-public"),
        *("--ledger", ledger),
        *("--dataset", "tiny", "--audit", audit, "--card", card, "--title", "Mine"),
        *("--license", "mit"),
    )
    assert (status, err) == (0, "")
    assert out == f"{page} written\n{card} written\n"
    text = page.read_text(encoding="utf-8")
    for part in (
        "<h1>Mine</h1>",
        "<h2>Spent on these records</h2>",
        "epsilon = 30, delta = 1e-06",
        "<h3>One fit with planted records",
        f"{results['one_run']['epsilon_lower']:.6g}",
        f"{results['replay']['movements'][0]['observed']:.6g}",
        "synthetic rows: 60 x 5, 4 classes",
        "tiny.h5",
        "type of the numbers",
    ):
        assert part in text
    assert "This fit is not among those that were charged" not in text
    assert "DPLeastSquares(" in text
    assert f"{persistence.load(model).privacy_.mu:.6g}" in text
    card_text = card.read_text(encoding="utf-8")
    assert 'license: "mit"' in card_text
    assert "A linear model trained on features, with" in card_text
    assert 'pipeline_tag: "tabular-classification"' in card_text


@pytest.mark.parametrize(
    ("made_by", "said"),
    [("toy", "features of a frozen network, with"), ("scattering", "features, with")],
)
def test_card_names_a_network_where_there_was_one(
    run, made_like, tmp_path, made_by, said
):
    path, model, card = made_like("f", model=made_by), tmp_path / "m", tmp_path / "c.md"
    fit = ("fit", "--estimator", "DPLeastSquares", "--epsilon", 20, "--quiet")
    assert run(*fit, "--train", path, "--out", model)[0] == 0
    page = ("--out", tmp_path / "p.html", "--features", path)
    assert run("report", model, *page, "--card", card)[0] == 0
    assert f"A linear model trained on {said}" in card.read_text(encoding="utf-8")


def test_report_needs_only_a_model(run, model, tmp_path):
    page = tmp_path / "report.html"
    assert run("report", model, "--out", page)[0] == 0
    text = page.read_text(encoding="utf-8")
    assert "DPLeastSquares with epsilon = 20" in text
    assert "Accuracy on public test records" not in text


def test_report_says_how_to_make_such_an_estimator(run, features, tmp_path):
    folder, card = tmp_path / "newton", tmp_path / "card.md"
    clf = privfeat.DPNewton(epsilon=20, classes=range(4), gradient_clip_norm=None)
    train = privfeat.open_features(features)["train"]
    persistence.save(clf.fit(train.X, train.y), folder)
    status, *_ = run("report", folder, "--out", tmp_path / "r.html", "--card", card)
    assert status == 0
    _, _, recipe = card.read_text(encoding="utf-8").partition("\nclf = ")
    made = eval(recipe.partition("\nclf.fit(X, y)")[0], vars(privfeat))
    assert made.get_params() == clf.get_params()


def test_report_says_where_a_prior_and_public_rows_are_from(run, features, tmp_path):
    """An array of numbers left out its middle, and public rows were not named."""
    folder, card = tmp_path / "model", tmp_path / "card.md"
    splits = privfeat.open_features(features)
    train, public = splits["train"], splits["test"].X[:]
    head = np.random.default_rng(0).normal(size=(4, public.shape[1]))
    clf = privfeat.DPFC(epsilon=20, classes=range(4), prior=head, public=public)
    persistence.save(clf.fit(train.X, train.y), folder)
    page = tmp_path / "r.html"
    assert run("report", folder, "--out", page, "--card", card)[0] == 0
    _, _, recipe = card.read_text(encoding="utf-8").partition("\n# X: ")
    assert "# prior: privfeat.load(FOLDER).prior, of the folder" in recipe
    assert "# public: the public rows of the fit" in recipe
    told = recipe.partition("\nclf = ")[2].partition("\nclf.fit(X, y)")[0]
    prior = privfeat.load(folder).prior
    made = eval(told, vars(privfeat) | {"prior": prior, "public": public})
    np.testing.assert_array_equal(made.prior, head)
    assert made.public is public


@pytest.mark.parametrize(
    ("option", "content", "message"),
    [
        ("--audit", "[]", "--audit must hold an object"),
        ("--audit", "{", "--audit must be a JSON file"),
    ],
)
def test_report_refuses_other_files(fails, model, tmp_path, option, content, message):
    path = tmp_path / "given.json"
    path.write_text(content)
    page = tmp_path / "report.html"
    assert message in fails("report", model, "--out", page, option, path)
    assert not page.exists()


def test_report_of_a_fit_that_its_ledger_lacks_says_so(run, charged, model, tmp_path):
    page = tmp_path / "report.html"
    names = ("--ledger", charged[1], "--dataset", "tiny")
    assert run("report", charged[0], "--out", page, *names)[0] == 0
    assert "This fit is not among those that were charged" not in page.read_text(
        encoding="utf-8"
    )
    other = tmp_path / "other.ledger"
    PrivacyLedger(other, dataset="tiny", epsilon=30.0, delta=1e-6)
    names = ("--ledger", other, "--dataset", "tiny")
    assert run("report", model, "--out", page, *names)[0] == 0
    assert "This fit is not among those that were charged" in page.read_text(
        encoding="utf-8"
    )


def test_report_refuses_a_ledger_without_its_data_set(fails, model, tmp_path):
    page = tmp_path / "report.html"
    error = fails("report", model, "--out", page, "--ledger", tmp_path / "no.ledger")
    assert "--ledger and --dataset must be given together" in error
    names = ("--ledger", tmp_path / "no.ledger", "--dataset", "tiny")
    assert "no.ledger" in fails("report", model, "--out", page, *names)
    assert not page.exists()


@pytest.mark.slow
def test_report_compares_how_features_were_made(run, fails, made_like, tmp_path):
    """A card must not give the weights or the accuracy of other features."""
    same, other = made_like("same"), made_like("other", weights_sha256="b")
    third, views = made_like("third", weights_sha256="a"), made_like("v", views=["a"])
    model, page, card = (tmp_path / name for name in ("model", "page.html", "card.md"))
    assert run(*fit_arguments(third, model, "--quiet"))[0] == 0
    report = ("report", model, "--out", page, "--card", card, "--test-is-public")
    for option in ("--test", "--features"):
        assert "weights_sha256 is 'b' and was 'a'" in fails(*report, option, other)
        assert page.exists() == (option == "--features")
        status, _, err = run(*report, option, views)
        assert (status, "but views is ['a'] and was ['zoom 1']" in err) == (0, True)
        assert '"views"' not in card.read_text()
        assert run(*report, option, same)[::2] == (0, "")
        assert '"weights_sha256": "a"' in card.read_text()
    assert run(*report)[0] == 0
    assert '"weights_sha256": "a"' in card.read_text()


def test_report_shows_exact_figures_of_public_records_alone(
    fails, features, model, tmp_path
):
    page = tmp_path / "r.html"
    message = fails("report", model, "--out", page, "--test", features)
    assert "Pass --test-is-public if they are" in message
    assert "privfeat evaluate" in message
    assert not page.exists()


def test_report_refuses_a_split_called_train(run, fails, features, model, tmp_path):
    """As ``fit --test`` does; a model does not know which records it was fitted on."""
    exact = ("--test-is-public", "--test")
    asked = ("report", model, "--out", tmp_path / "r.html", *exact)
    assert "must not be the training split" in fails(*asked, f"{features}:train")
    assert run(*asked, f"{features}:train", "--unseen")[0] == 0


def test_report_names_its_data_set_without_a_ledger(run, model, tmp_path):
    page = tmp_path / "r.html"
    who = ("--dataset", "the <b>clinic</b>", "--responsible", "Dr. <i>Who</i>")
    assert run("report", model, "--out", page, *who, "--date", "May 1st")[0] == 0
    text = page.read_text(encoding="utf-8")
    assert "the &lt;b&gt;clinic&lt;/b&gt;" in text
    assert "<dt>Name</dt><dd>Dr. &lt;i&gt;Who&lt;/i&gt;</dd>" in text
    assert "May 1st" in text
    assert '<p class="warn">Unknown. No ledger was given' in text


def test_report_is_of_today_if_nothing_is_said(run, model, tmp_path):
    page = tmp_path / "r.html"
    days = {date.today().isoformat()}
    assert run("report", model, "--out", page)[0] == 0
    days.add(date.today().isoformat())  # midnight
    assert any(f"Written by privfeat on {day};" in page.read_text() for day in days)


def test_report_has_the_checksums_that_its_command_prints(run, model, tmp_path):
    page = tmp_path / "r.html"
    assert run("report", model, "--out", page)[0] == 0
    text = page.read_text(encoding="utf-8")
    command = re.search(r"<pre>(sha256sum .*)</pre>", text)[1].split()
    assert {*command[1:]} == {path.name for path in Path(model).iterdir()}
    if shutil.which("sha256sum") is None:
        pytest.skip("needs sha256sum")
    printed = subprocess.run(
        command, cwd=model, capture_output=True, text=True, check=True
    )
    for line in printed.stdout.splitlines():
        checksum, name = line.split()
        assert f'scope="row">{name}</th><td role="cell">{checksum}</td>' in text


@pytest.mark.parametrize("users", [False, True])
def test_recipe_of_a_table_fits_one_again(run, patients, tmp_path, users):
    folder, card = tmp_path / "model", tmp_path / "card.md"
    words = ("--users", "patient", "--max-group-size", 2) if users else ()
    assert run(*fit(patients, *words, "--out", folder, "--quiet"))[0] == 0
    assert run("report", folder, "--out", tmp_path / "r.html", "--card", card)[0] == 0
    _, _, recipe = card.read_text(encoding="utf-8").partition("\nfrom privfeat")
    frame = pd.read_csv(patients / "train.csv", dtype=str, keep_default_na=False)
    names = persistence.load_class_names(folder)
    given = {
        "table": frame.drop(columns=["outcome", *(["patient"] if users else [])]),
        "y": [names.index(name) for name in frame["outcome"]],
        "groups": frame["patient"],
    }
    exec("from privfeat" + recipe.partition("\n```")[0], given)
    saved = persistence.load(folder)
    assert given["clf"].get_params() == saved.get_params() | {"verbose": 0}
    told = saved.privacy_
    public = tuple(fact for fact in told.public if fact != DECLARED)
    assert given["clf"].privacy_ == replace(told, public=public)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
def test_report_of_a_network_after_steps(run, tmp_path):
    """It looked for the parameters of the network in the pipeline."""
    network = DPSGDClassifier(
        model="mlp", classes=[0, 1], n_iter=2, expected_batch_size=9, random_state=0
    )
    X = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    fitted = make_pipeline(Normalizer(), network).fit(X, np.arange(30) % 2)
    persistence.save(fitted, tmp_path / "model")
    out = tmp_path / "out.html"
    run("report", str(tmp_path / "model"), "--out", str(out))
    page = out.read_text()
    assert "made numbers of each record by itself" in page
    assert "mlp" in page
