"""One self-contained HTML file about a fit: no script, no network.

Everything that is shown is passed as text to `privfeat.report.svg.element`, which
escapes it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any
from xml.etree import ElementTree as ET

from privfeat.analysis.metrics import CalibrationReport
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.report.ledger import LedgerSummary
from privfeat.report.sections import (
    audited,
    curves,
    ledger,
    promise,
    quality,
    section,
    symbols,
)
from privfeat.report.svg import element
from privfeat.report.tables import pairs_table

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
    ledger : LedgerSummary
        Of the same records, from `privfeat.report.ledger.summarize`.
    audit : mapping
        Results of an audit by name, as ``privfeat audit --out`` writes them; nested
        ones become tables of their own.
    provenance : mapping
        Data and weights by name.
    reproduce : str
        How to fit such a model again.
    kind : str
        What the model is, in a sentence for its card.
    task : str
        Its task, as the Hugging Face hub names it.
    """

    title: str
    statement: PrivacyStatement
    calibration: CalibrationReport | None = None
    test_name: str = ""
    ledger: LedgerSummary | None = None
    audit: Mapping[str, Any] | None = None
    provenance: Mapping[str, Any] | None = None
    reproduce: str | None = None
    kind: str = "A model trained with differential privacy by privfeat."
    task: str = "image-classification"


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
        section("What is promised", *promise(statement)),
        section("In symbols", *symbols(statement)),
        *curves(statement),
    ]
    if report.calibration is not None:
        sections.append(quality(report.calibration, report.test_name))
    if report.ledger is not None:
        sections.append(ledger(report.ledger))
    if report.audit:
        sections.append(audited(report.audit))
    if report.provenance:
        table = pairs_table("Data and weights", report.provenance.items())
        sections.append(section("Data and weights", table))
    if report.reproduce:
        sections.append(
            section(
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


def _footer(statement: PrivacyStatement) -> ET.Element:
    return element(
        "p",
        f"Written by privfeat; the statement is of version {statement.version}.",
        class_="soft",
    )


def _style() -> str:
    return files("privfeat.report").joinpath("style.css").read_text(encoding="utf-8")
