"""One self-contained HTML file about a fit: no script, no network.

Everything that is shown is passed as text to `privfeat.report.svg.element`, which
escapes it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from privfeat.analysis.metrics import CalibrationReport
from privfeat.core.statement import PrivacyStatement
from privfeat.report.guarantee import (
    epsilon_delta_curve,
    in_words,
    membership_tradeoff,
)
from privfeat.report.svg import Series, bar_chart, element, line_chart
from privfeat.report.tables import format_value, pairs_table, rows_table

__all__ = ["FitReport", "render_html"]

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


@dataclass(frozen=True)
class FitReport:
    """What a report is made of; everything but the first two is optional.

    Attributes
    ----------
    title : str
    statement : PrivacyStatement
    calibration : CalibrationReport, optional
        On test records, which are public.
    test_name : str
        Where the test records came from.
    ledger : iterable of mappings
        Every spending on the same records, in order: one row each.
    audit : mapping
        Results of an audit by name.
    provenance : mapping
        Data and weights by name.
    reproduce : str
        How to fit such a model again.
    """

    title: str
    statement: PrivacyStatement
    calibration: CalibrationReport | None = None
    test_name: str = ""
    ledger: Iterable[Mapping[str, Any]] | None = None
    audit: Mapping[str, Any] | None = None
    provenance: Mapping[str, Any] | None = None
    reproduce: str | None = None


def render_html(report: FitReport) -> str:
    """Return the report as one HTML document.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from privfeat import DPLeastSquares
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = DPLeastSquares(epsilon=1, classes=range(10)).fit(X, y)
    >>> page = render_html(FitReport("Digits", clf.privacy_))
    >>> page.startswith("<!DOCTYPE html>") and "://" not in page
    True
    """
    statement = report.statement
    sections = [
        _section("What is promised", *_promise(statement)),
        _section("In symbols", *_symbols(statement)),
        *_curves(statement),
    ]
    if report.calibration is not None:
        sections.append(_quality(report.calibration, report.test_name))
    if report.ledger is not None:
        sections.append(
            _section(
                "Spent on these records",
                element("p", "Every use of the same records, in order."),
                rows_table("Ledger", list(report.ledger)),
            )
        )
    if report.audit:
        sections.append(
            _section(
                "Audit",
                element(
                    "p",
                    "Attacks on the training itself. They can refute a guarantee, "
                    "never prove one.",
                ),
                pairs_table("Audit", report.audit.items()),
            )
        )
    if report.provenance:
        table = pairs_table("Data and weights", report.provenance.items())
        sections.append(_section("Data and weights", table))
    if report.reproduce:
        sections.append(
            _section(
                "How to reproduce",
                element("pre", report.reproduce, tabindex=0),
                element(
                    "p",
                    "The noise is fresh at every fit, so accuracy will differ a "
                    "little. Every fit of the same records spends its budget again.",
                ),
            )
        )
    page = element(
        "html",
        element(
            "head",
            element("meta", charset="utf-8"),
            element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
            element(
                "meta", name="viewport", content="width=device-width, initial-scale=1"
            ),
            element("title", report.title),
            element("style", _style()),
        ),
        element(
            "body",
            element("main", element("h1", report.title), *sections, _footer(statement)),
        ),
        lang="en",
    )
    return (
        "<!DOCTYPE html>\n"
        + ET.tostring(page, encoding="unicode", method="html")
        + "\n"
    )


def _promise(statement: PrivacyStatement) -> list[ET.Element]:
    style = "" if statement.private else "warn"
    words = [element("p", text, class_=style) for text in in_words(statement)]
    budget = (
        f"ε = {format_value(statement.epsilon)}, δ = {format_value(statement.delta)}"
    )
    return [
        element("p", element("strong", budget), class_="budget"),
        *words,
        element("p", "Assumed to be known to everyone:"),
        element("ul", *(element("li", fact) for fact in statement.public)),
    ]


def _symbols(statement: PrivacyStatement) -> list[ET.Element]:
    pairs: list[tuple[str, Any]] = [
        ("epsilon ε", statement.epsilon),
        ("delta δ", statement.delta),
        ("mu μ (Gaussian DP)", statement.mu),
        ("rho ρ (zCDP)", statement.rho),
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
    ]


def _curves(statement: PrivacyStatement) -> list[ET.Element]:
    if not statement.private:
        return []
    epsilons, deltas = epsilon_delta_curve(statement)
    curve = line_chart(
        [
            Series("guarantee", list(zip(epsilons, deltas, strict=True))),
            Series("stated", [(statement.epsilon, statement.delta)]),
        ],
        title=f"delta against epsilon; {format_value(statement.delta)} at "
        f"{format_value(statement.epsilon)}",
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
    return [_section("What it implies", figures)]


def _quality(report: CalibrationReport, test_name: str) -> ET.Element:
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
    return _section(
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


def _section(title: str, *children: ET.Element) -> ET.Element:
    return element("section", element("h2", title), *children)


def _figure(chart: ET.Element, caption: str) -> ET.Element:
    return element("figure", chart, element("figcaption", caption))


def _footer(statement: PrivacyStatement) -> ET.Element:
    return element(
        "p",
        f"Written by privfeat; the statement is of version {statement.version}.",
        class_="soft",
    )


def _style() -> str:
    return files("privfeat.report").joinpath("style.css").read_text(encoding="utf-8")
