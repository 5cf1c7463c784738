"""What a report shows of test records that have a budget of their own."""

import shutil

import pytest

from privfeat import DPFC, PrivacyLedger, load, open_features, save
from privfeat.analysis.rates import shifted_rates
from privfeat.metrics import evaluation_of_predictions
from privfeat.metrics.files import load_evaluation, save_evaluation


@pytest.fixture
def measured(run, charged, features):
    """Return the model and the ledger, with two evaluations of other records."""
    model, ledger = charged
    PrivacyLedger(ledger, dataset="others", epsilon=30.0, delta=1e-6)
    names = ("--ledger", ledger, "--dataset", "others", "--delta", 1e-6, "--overwrite")
    for epsilon in (3, 4):
        words = ("evaluate", "--model", model, "--test", f"{features}:test", *names)
        assert run(*words, "--epsilon", epsilon)[0] == 0
    return model, ledger


def test_report_lists_what_was_spent_on_test_records(run, measured, tmp_path):
    model, ledger = measured
    page, card = tmp_path / "report.html", tmp_path / "card.md"
    names = ("--ledger", ledger, "--dataset", "tiny", "--test-dataset", "others")
    assert run("report", model, "--out", page, "--card", card, *names)[0] == 0
    text = page.read_text(encoding="utf-8")
    spent = text.partition("Spent on the test records")[2].partition("</section>")[0]
    assert spent.count("private evaluation of a model") == 2
    assert "add its cost" not in spent
    assert "was charged to another data set, of test records" in text
    assert "Spent on the test records in all" in card.read_text(encoding="utf-8")


def test_report_lists_records_that_a_choice_was_made_by(run, measured, tmp_path):
    model, ledger = measured
    page, card = tmp_path / "report.html", tmp_path / "card.md"
    PrivacyLedger(ledger, dataset="third", epsilon=2.0, delta=1e-6)
    names = ("--ledger", ledger, "--dataset", "tiny", "--test-dataset", "others")
    words = ("report", model, "--out", page, "--card", card, *names)
    assert run(*words, "--test-dataset", "third")[0] == 0
    text = page.read_text(encoding="utf-8")
    assert text.count("Spent on the test records") == 1
    assert "of a budget of epsilon = 2" in text.partition("Spent on other records")[2]
    assert "add its cost" not in text.partition("Spent on the test")[2]
    assert "records that were used beside them" in card.read_text(encoding="utf-8")


def test_report_on_test_records_knows_that_the_fit_is_not_of_them(
    run, measured, tmp_path
):
    page = tmp_path / "report.html"
    names = ("--ledger", measured[1], "--dataset", "others")
    assert run("report", measured[0], "--out", page, *names)[0] == 0
    text = page.read_text(encoding="utf-8")
    assert "This fit is not among those that were charged: add its cost" not in text
    assert "these are test records. Where they are of people who are in the fit" in text


def test_report_says_that_test_records_were_not_charged(run, measured, tmp_path):
    model, ledger = measured
    page = tmp_path / "report.html"
    PrivacyLedger(ledger, dataset="third", epsilon=1.0, delta=1e-6)
    names = ("--ledger", ledger, "--dataset", "tiny", "--test-dataset", "third")
    assert run("report", model, "--out", page, *names)[0] == 0
    text = page.read_text(encoding="utf-8")
    assert "This evaluation is not among those that were charged" in text
    assert "it was charged to another one, or to none" in text


def test_report_refuses_a_test_data_set_that_it_cannot_show(
    fails, charged, measured, model, tmp_path
):
    words = ("report", measured[0], "--out", tmp_path / "r.html", "--test-dataset")
    assert "must be given with --ledger" in fails(*words, "others")
    names = ("--ledger", measured[1], "--dataset", "others")
    assert "another data set than --dataset" in fails(*words, "others", *names)
    again = ("--ledger", measured[1], "--dataset", "tiny", "--test-dataset", "others")
    assert "another data set than --dataset" in fails(*words, "others", *again)
    other = ("report", model, "--out", tmp_path / "r.html", "--test-dataset", "others")
    named = ("--ledger", measured[1], "--dataset", "tiny")
    assert "which holds no evaluation" in fails(*other, *named)
    assert not (tmp_path / "r.html").exists()


def test_a_copy_shows_the_evaluation_of_its_original(run, measured, tmp_path):
    """As of a declaration that takes more rows: what was charged is found again."""
    model, ledger = measured
    copied, page = tmp_path / "copy", tmp_path / "report.html"
    save(load(model), copied)
    found, on = load_evaluation(model)
    save_evaluation(found, copied, test=f"{on}, rows without gaps")
    names = ("--ledger", ledger, "--dataset", "tiny", "--test-dataset", "others")
    assert run("report", copied, "--out", page, *names)[0] == 0
    text = page.read_text(encoding="utf-8")
    assert "Measured on tiny.h5:test, rows without gaps, with noise" in text
    assert "add its cost" not in text.partition("Spent on the test records")[2]


@pytest.mark.parametrize("size", [1, 2])
def test_report_says_how_many_rows_of_a_user_were_measured(
    run, patients, tmp_path, size
):
    model = shutil.copytree(patients / "model", tmp_path / "model")
    page, card = tmp_path / "report.html", tmp_path / "card.md"
    words = ("--users", "patient", "--max-group-size", size, "--test")
    assert run("evaluate", "--model", model, *words, patients / "test.csv")[0] == 0
    assert run("report", model, "--out", page, "--card", card)[0] == 0
    rows = "one row" if size == 1 else "at most 2 rows"
    for written in (page, card):
        text = written.read_text(encoding="utf-8")
        assert f"The figures are of {rows} of each user, drawn at random" in text


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
def test_report_says_that_probabilities_were_shifted(run, features, tmp_path):
    train = open_features(features)["train"]
    y = train.y[:] == 1
    clf = DPFC(epsilon=20, classes=[False, True], random_state=0).fit(train.X, y)
    page, card = tmp_path / "report.html", tmp_path / "card.md"
    for model in (clf, shifted_rates(clf, before=[1, 1], after=[1, 9])):
        save(model, tmp_path / "alert", overwrite=True)
        found = evaluation_of_predictions(
            model.predict_proba(train.X), y, classes=[False, True], epsilon=20
        )
        save_evaluation(found, tmp_path / "alert", test="tiny")
        words = ("report", tmp_path / "alert", "--out", page, "--card", card)
        assert run(*words)[0] == 0
        said = [written.read_text(encoding="utf-8") for written in (page, card)]
        is_shifted = model is not clf
        for text in said:
            assert ("where its probability was 0.1 or more" in text) == is_shifted
            assert ("analysis.rates.shifted_rates: the rates" in text) == is_shifted
            assert ("probabilities of this model were shifted" in text) == is_shifted
