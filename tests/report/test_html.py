import math
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfeat.core.statement.rounding import rounded_up
from privfeat.report import html
from privfeat.report.html import FitReport, render_html
from tests.report.conftest import state

VOID = {"meta"}


class Outline(HTMLParser):
    """Collects headings, texts and tags, and that tags are closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.headings, self.text = [], [], [], ""
        self.links = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [v for k, v in attrs if k in {"href", "src", "srcset", "data"}]
        assert not any(key.startswith("on") for key, _ in attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] == ["h2"]:
            self.headings.append(data)
        if self.open[-1:] != ["style"]:
            self.text += data


def read(report):
    outline = Outline()
    outline.feed(render_html(report))
    assert outline.open == []
    return outline


def test_report_has_every_section(full_report):
    assert read(full_report).headings == [
        "What is promised",
        "People with several rows",
        "Assumed to be known to everyone",
        "Spent on these records",
        "Accuracy on public test records",
        "The data",
        "Which model this is",
        "Signature",
        "In symbols",
        "What it implies",
        "Audit",
        "How to reproduce",
    ]


def test_sections_without_content_are_left_out(statement):
    assert read(FitReport("Title", statement)).headings == [
        "What is promised",
        "People with several rows",
        "Assumed to be known to everyone",
        "Spent on these records",
        "Signature",
        "In symbols",
        "What it implies",
    ]


def test_nothing_is_fetched_or_run(full_report):
    page = render_html(full_report)
    outline = read(full_report)
    assert outline.links == []
    assert not {"script", "link", "img", "iframe", "object", "form"} & {*outline.tags}
    assert "url(" not in page
    assert "@import" not in page
    assert "default-src 'none'" in page


def test_texts_are_shown_as_they_are(full_report):
    outline = read(full_report)
    assert "A <b>title</b> & more" in outline.text
    assert "<script>alert(1)</script>" in outline.text
    assert "test.h5:<i>test</i>" in outline.text
    assert "fit <one>" in outline.text
    assert "a <b>set</b>" in outline.text
    assert "bound <lower>" in outline.text
    assert "(4) <&>" in outline.text
    assert "2026-11-23 <&>" in outline.text
    assert "the <em>data</em>" in outline.text
    assert (
        outline.text.count("Dr. <strong>Who</strong>") == 2
    )  # at the top, and to sign
    assert "<ill>" in outline.text
    assert "Each <tt>row</tt> became" in outline.text
    assert "age <sub>" in outline.text
    added = {"b", "i", "em", "tt", "sub", "ill", "one", "lower"}
    assert not added & {*outline.tags}
    assert outline.tags.count("strong") == 2  # our own


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(st.text(min_size=1))
def test_no_text_becomes_markup(text):
    """Wherever it stands: in a title, an attribute, a name or a value."""

    def written(given):
        return FitReport(
            given,
            state(epsilon=float("inf")),
            date=given,
            dataset=given,
            responsible=given,
            features=given,
            columns=[{given: given}],
            checksums={given: given},
            audit={given: {given: given, "rows": [{given: given}]}},
            provenance={given: [given, {given: given}]},
            reproduce=given,
        )

    assert read(written(text)).tags == read(written("plain")).tags


def test_numbers_are_those_of_the_statement(full_report):
    text = read(full_report).text
    statement = full_report.statement
    assert "ε = 1, δ = 1e-06" in text
    assert rounded_up(statement.mu) in text
    assert f"{statement.releases[0].noise_multiplier:.6g}" in text
    assert f"{full_report.calibration.ece:.6g}" in text


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ({"epsilon": float("inf")}, "no privacy guarantee"),
        ({"seeded": True}, "not private against anyone"),
    ],
)
def test_unprotected_fits_are_called_so(budget, words):
    outline = read(FitReport("Title", state(**budget)))
    assert words in outline.text
    assert "What it implies" not in outline.headings
    assert "warn" in render_html(FitReport("Title", state(**budget)))


def test_nested_results_of_an_audit_are_tables_of_their_own(full_report):
    page = render_html(full_report)
    heading = "One fit with planted records: epsilon is at least"
    assert f"<h3>{heading}</h3>" in page
    assert f'aria-label="Audit: {heading}: checks"' in page
    assert 'scope="row">n right</th><td role="cell">7</td>' in page
    assert page.count('scope="col">p value</th>') == 1
    assert "0.25" in page


def test_a_fit_that_was_not_charged_is_called_so(full_report):
    words = "This fit is not among those that were charged"
    assert words not in read(full_report).text
    lost = replace(full_report, ledger=replace(full_report.ledger, holds_fit=False))
    assert words in read(lost).text


def test_spending_is_unknown_in_red_without_a_ledger(full_report):
    warning = '<p class="warn">Unknown. No ledger was given'
    assert warning in render_html(replace(full_report, ledger=None))
    assert warning not in render_html(full_report)
    assert "epsilon = 0.5, of a budget of epsilon = 3" in read(full_report).text


def test_report_says_until_when_it_knows_what_was_spent(full_report):
    text = read(full_report).text
    assert "later uses are not on this page" in text
    assert "is complete, up to the day of this report" in text
    assert "up to the day" not in read(replace(full_report, ledger=None)).text


def test_an_evaluation_that_was_not_charged_is_called_so(full_report):
    words = "private evaluation of this model is not among the charges of this data set"
    assert words not in read(full_report).text
    lost = replace(full_report.ledger, holds_evaluation=False)
    page = render_html(replace(full_report, ledger=lost))
    assert f"<p>The {words}" in page  # no warning: it may be as it should be


def test_people_with_several_rows_are_told_what_protects_them():
    one = read(FitReport("Title", state(unit="record"))).text
    assert "is protected less than the promise above says" in one
    assert "records of one person" in one
    all_rows = read(FitReport("Title", state(unit="user"))).text
    assert "All rows of one user are protected together" in all_rows
    assert "is protected less than" not in all_rows


def test_recall_has_the_names_of_the_classes(full_report):
    page = render_html(full_report)
    assert '<td role="cell">&lt;ill&gt;</td>' in page
    assert '<td role="cell" data-label="from">0.25</td>' in page
    unnamed = render_html(replace(full_report, class_names=()))
    assert '<td role="cell">2</td>' in unnamed


def test_raw_keys_are_words(full_report):
    text = read(replace(full_report, provenance={"weights_sha256": "ab"})).text
    assert "SHA-256 of the weights" in text
    for key in ("weights_sha256", "add_remove", "feature_mean", "gradient_sum"):
        assert key not in text
    assert "one record, there or not there" in text
    assert "gradient of the loss" in text


def test_events_are_those_of_the_statement(full_report):
    assert "GaussianDpEvent" in read(full_report).text
    sampled = state(sampling_prob=0.1, epsilon=None, noise_multiplier=2.0)
    text = read(FitReport("Title", sampled)).text
    assert "PoissonSampledDpEvent" in text
    assert "sampling_probability=0.1" in text


def test_sampled_statements_are_shown_too():
    outline = read(
        FitReport("Title", state(sampling_prob=0.1, epsilon=None, noise_multiplier=2.0))
    )
    assert "What it implies" in outline.headings
    assert "mu μ" not in outline.text


def test_style_is_for_light_dark_and_print(statement):
    page = render_html(FitReport("Title", statement))
    for rule in ("prefers-color-scheme: dark", "@media print", "width=device-width"):
        assert rule in page


def test_a_page_is_the_same_whenever_it_is_written(full_report):
    assert render_html(full_report) == render_html(full_report)


@pytest.mark.slow
@pytest.mark.parametrize(
    "budget", [{}, {"sampling_prob": 0.01}, {"epsilon": math.inf}, {"unit": "user"}]
)
def test_events_are_those_of_dp_accounting(budget):
    statement = state(**budget)
    assert html._event(statement) == str(statement.event())
