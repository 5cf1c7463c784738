from dataclasses import replace

import pytest

from privfeat.report.card import render_card
from privfeat.report.html import FitReport

yaml = pytest.importorskip("yaml")


def front_matter(card):
    start, front, body = card.split("---\n", 2)
    assert start == ""
    return yaml.safe_load(front), body


def test_front_matter_is_what_the_hub_reads(full_report):
    metadata, _ = front_matter(render_card(full_report, license_name="apache-2.0"))
    assert metadata["library_name"] == "privfeat"
    assert metadata["license"] == "apache-2.0"
    assert "differential-privacy" in metadata["tags"]
    (entry,) = metadata["model-index"]
    (result,) = entry["results"]
    assert entry["name"] == full_report.title
    assert result["dataset"]["name"] == full_report.test_name
    assert result["metrics"][0]["type"] == "accuracy"
    assert result["metrics"][0]["value"] == round(full_report.calibration.accuracy, 6)


def test_body_holds_the_statement(full_report):
    _, body = front_matter(render_card(full_report))
    assert str(full_report.statement) in body
    assert "If one record was left out" in body
    assert "# A \\<b\\>title" in body


def test_body_says_who_answers_and_what_was_spent(full_report):
    _, body = front_matter(render_card(full_report))
    assert "- Responsible: Dr. \\<strong\\>Who" in body
    assert "A person behind several records is protected less" in body
    spent = "by 2026-11-23 \\<\\&\\>: epsilon = 0.5, of a budget of epsilon = 3"
    assert f"as far as it was charged {spent}" in body
    assert f"`model.json` has SHA-256 `{'0' * 64}`" in body
    _, unknown = front_matter(render_card(replace(full_report, ledger=None)))
    assert "unknown: no ledger was given" in unknown


def test_no_text_breaks_out_of_its_block(statement):
    evil = "```\n---\n<script>\n````"
    report = FitReport("a\n---\nb: c", statement, provenance={"x": evil})
    report = FitReport("a\n---\nb: c", statement, reproduce=evil, provenance={"x": 1})
    metadata, body = front_matter(render_card(report))
    assert "b" not in metadata
    assert f"`````text\n{evil}\n`````" in body
    assert "# a --- b: c" in body


def test_card_says_what_the_model_is(full_report):
    network = replace(full_report, kind="A net <b>", task="tabular-regression")
    metadata, body = front_matter(render_card(network))
    assert metadata["pipeline_tag"] == "tabular-regression"
    assert metadata["model-index"][0]["results"][0]["task"]["type"] == (
        "tabular-regression"
    )
    assert "A net \\<b\\>" in body


def test_without_measurements_there_is_no_index(statement):
    metadata, body = front_matter(render_card(FitReport("Title", statement)))
    assert "model-index" not in metadata
    assert "## Accuracy" not in body
