"""The sections of a report, each from the data that it shows."""

import math
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from privfeat.analysis.metrics import CalibrationReport
from privfeat.core.accounting.rounding import rounded_up
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.exceptions import UnsupportedEventError
from privfeat.report.guarantee import (
    epsilon_delta_curve,
    in_words,
    membership_tradeoff,
)
from privfeat.report.ledger import LedgerSummary
from privfeat.report.svg import Series, bar_chart, element, line_chart
from privfeat.report.tables import nested_tables, pairs_table, rows_table

__all__ = ["audited", "curves", "ledger", "promise", "quality", "section", "symbols"]


def promise(statement: PrivacyStatement) -> list[ET.Element]:
    """Return the guarantee in words."""
    style = "" if statement.private else "warn"
    words = [element("p", text, class_=style) for text in in_words(statement)]
    budget = f"ε = {_cost(statement.epsilon)}, δ = {_cost(statement.delta)}"
    return [
        element("p", element("strong", budget), class_="budget"),
        *words,
        element("p", "Assumed to be known to everyone:"),
        element("ul", *(element("li", fact) for fact in statement.public)),
    ]


def _cost(value: float | None) -> str | None:
    return "∞" if value == math.inf else value if value is None else rounded_up(value)


def symbols(statement: PrivacyStatement) -> list[ET.Element]:
    """Return the guarantee in symbols, and what was released."""
    pairs: list[tuple[str, Any]] = [
        ("epsilon ε", _cost(statement.epsilon)),
        ("delta δ", _cost(statement.delta)),
        ("mu μ (Gaussian DP)", _cost(statement.mu)),
        ("rho ρ (zCDP)", _cost(statement.rho)),
        ("protected unit", statement.unit),
        ("neighbours", statement.adjacency),
        ("accounting", statement.accounting),
        ("noise from a seed", "yes: not private" if statement.seeded else "no"),
    ]
    releases = [
        {
            "release": record.name,
            "times": record.count,
            "L2 sensitivity": record.l2_sensitivity,
            "noise multiplier": record.noise_multiplier,
            "noise stddev": record.noise_stddev,
            "sampling": record.sampling_prob,
        }
        for record in statement.releases
    ]
    return [
        element(
            "p",
            "For all neighbouring data sets D, D′ and all events S: P[M(D) ∈ S] ≤ "
            "exp(ε) P[M(D′) ∈ S] + δ.",
        ),
        pairs_table("Guarantee", [pair for pair in pairs if pair[1] is not None]),
        element("p", "What was released, with Gaussian noise:"),
        rows_table("Releases", releases),
        *_event(statement),
    ]


def _event(statement: PrivacyStatement) -> list[ET.Element]:
    """For accountants of the reader's own."""
    try:
        event = statement.event()
    except UnsupportedEventError:
        return []
    return [
        element("p", "The same for dp-accounting:"),
        element("pre", str(event), tabindex=0),
    ]


def curves(statement: PrivacyStatement) -> list[ET.Element]:
    """Return what the guarantee implies; nothing without one."""
    if not statement.private:
        return []
    epsilons, deltas = epsilon_delta_curve(statement)
    curve = line_chart(
        [
            Series("guarantee", list(zip(epsilons, deltas, strict=True))),
            Series("stated", [(statement.epsilon, statement.delta)]),
        ],
        title=f"delta against epsilon; {_cost(statement.delta)} at "
        f"{_cost(statement.epsilon)}",
        x_label="ε",
        y_label="δ",
        log_y=True,
    )
    rates = np.linspace(0.0, 1.0, 101)
    reached = membership_tradeoff(statement, rates)
    tradeoff = line_chart(
        [
            Series("guessing", [(0.0, 0.0), (1.0, 1.0)], "guide"),
            Series("bound", list(zip(rates, reached, strict=True))),
        ],
        title="largest true-positive rate against false-positive rate",
        x_label="false-positive rate",
        y_label="true-positive rate, at most",
    )
    figures = element(
        "div",
        _figure(
            curve, "All pairs on the curve hold at once; the dot is the stated one."
        ),
        _figure(
            tradeoff,
            "The best that any membership inference can do, proved; dashed: guessing.",
        ),
        class_="charts",
    )
    return [section("What it implies", figures)]


def quality(report: CalibrationReport, test_name: str) -> ET.Element:
    """Return accuracy and calibration on test records."""
    where = f" on {test_name}" if test_name else ""
    reliability = bar_chart(
        report.bin_edges.tolist(),
        report.bin_accuracy.tolist(),
        title="accuracy against confidence",
        x_label="confidence",
        y_label="accuracy",
        diagonal=True,
    )
    shares = report.bin_counts / report.bin_counts.sum()
    histogram = bar_chart(
        report.bin_edges.tolist(),
        shares.tolist(),
        title="part of the records against confidence",
        x_label="confidence",
        y_label="part of the records",
    )
    pairs = [
        ("accuracy", report.accuracy),
        ("negative log-likelihood", report.nll),
        ("Brier score (0 to 2)", report.brier),
        ("expected calibration error", report.ece),
        ("maximum calibration error", report.mce),
    ]
    return section(
        "Accuracy and calibration",
        element(
            "p",
            f"Measured{where}, {len(report.confidence):,} records. Their labels must "
            "be public, or be accounted for separately: the guarantee does not cover "
            "these numbers.",
        ),
        pairs_table("Accuracy", pairs),
        element(
            "div",
            _figure(reliability, "Reliability: bars on the dashed line are honest."),
            _figure(histogram, "How sure the model is."),
            class_="charts",
        ),
    )


def ledger(summary: LedgerSummary) -> ET.Element:
    """Return what was spent on the same records."""
    parts = [
        element(
            "p",
            "Every use of the same records that was charged to their ledger. Fits that "
            "were not charged are not counted.",
        ),
        pairs_table("Budget", summary.budget),
        rows_table("Charges", summary.charges),
    ]
    if not summary.holds_fit:
        missing = "This fit is not among those that were charged: add its cost."
        parts.insert(1, element("p", missing, class_="warn"))
    return section("Spent on these records", *parts)


# What `privfeat audit --out` writes, in words.
_AUDITS = {
    "replay": "Replay: how far each sum moves without one record, and may move",
    "noise": "Noise: what was drawn over what is declared",
    "one_run": "One fit with planted records: epsilon is at least",
    "membership": "Membership inference by the loss, and what the guarantee allows",
}


def audited(results: Mapping[str, Any]) -> ET.Element:
    """Return what attacks on such fits found."""
    named = {_AUDITS.get(key, key): value for key, value in results.items()}
    return section(
        "Audit",
        element(
            "p",
            "Attacks on throw-away fits of the same kind, on data that may leak. They "
            "can refute a guarantee, never prove one.",
        ),
        *nested_tables("Audit", named),
    )


def section(title: str, *children: ET.Element) -> ET.Element:
    """Return a part of the page under its heading."""
    return element("section", element("h2", title), *children)


def _figure(chart: ET.Element, caption: str) -> ET.Element:
    return element("figure", chart, element("figcaption", caption))
