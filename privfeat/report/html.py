"""One self-contained HTML file about a fit: no script, no network.

The texts are in ``templates/``. jinja2 escapes all values but the charts, which are
markup and hold no text from outside.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from privfeat._extras import require
from privfeat.core.accounting.plan import ReleaseRecord
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.core.statement.rounding import rounded_down, rounded_up
from privfeat.exceptions import UnsupportedEventError
from privfeat.report.evaluation import tables_of
from privfeat.report.guarantee import (
    epsilon_delta_curve,
    in_words,
    membership_tradeoff,
)
from privfeat.report.ledger import LedgerSummary
from privfeat.report.svg import bar_chart, line_chart

if TYPE_CHECKING:
    from jinja2 import Environment

    from privfeat.analysis.metrics import CalibrationReport
    from privfeat.metrics.measuring import Evaluation

__all__ = ["FitReport", "check_packages", "format_value", "render_html"]

# What `privfeat audit --out` writes, in words.
_AUDITS = {
    "replay": "Replay: how far each sum moves without one record, and may move",
    "noise": "Noise: what was drawn over what is declared",
    "one_run": "One fit with planted records: epsilon is at least",
    "membership": "Membership inference by the loss, and what the guarantee allows (of "
    "few rows chance alone may find more)",
}


@dataclass(frozen=True)
class FitReport:
    """What a report is made of; everything but the first two is optional.

    Attributes
    ----------
    title : str
    statement : PrivacyStatement
    calibration : CalibrationReport
        On test records, which are public; ``test_name`` says where they are from.
    evaluation : ClassifierEvaluation or RegressorEvaluation
        Of private test records; ``evaluated_on`` is what they are called.
    ledger : LedgerSummary
        Of the same records, from `privfeat.report.ledger.summarize`.
    audit : mapping
        Results of an audit by name, as ``privfeat audit --out`` writes them.
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
    calibration: "CalibrationReport | None" = None
    test_name: str = ""
    evaluation: "Evaluation | None" = None
    evaluated_on: str = ""
    ledger: LedgerSummary | None = None
    audit: Mapping[str, Any] | None = None
    provenance: Mapping[str, Any] | None = None
    reproduce: str | None = None
    kind: str = "A model trained with differential privacy by privfeat."
    task: str = "image-classification"


def check_packages() -> None:
    """Raise ImportError unless the packages that a report needs are installed."""
    for package in ("jinja2", "matplotlib"):
        require("a report", package, extra="report")


def load_templates(*, autoescape: bool) -> "Environment":
    """Return the templates; raise ImportError where a package is missing."""
    check_packages()
    from jinja2 import Environment, PackageLoader, StrictUndefined

    templates = Environment(
        loader=PackageLoader("privfeat.report"),
        autoescape=autoescape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters.update(
        as_text=format_value,
        columns=lambda rows: dict.fromkeys(key for row in rows for key in row),
    )
    return templates


def render_html(report: FitReport) -> str:
    """Return the report as one HTML document.

    Raises
    ------
    ImportError
        If jinja2 or matplotlib is missing.

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
    templates = load_templates(autoescape=True)
    templates.filters["rounded"] = _rounded
    templates.tests["nested"] = _is_nested
    templates.globals.update(
        bar_chart=bar_chart,
        line_chart=line_chart,
        epsilon_delta_curve=epsilon_delta_curve,
        membership_tradeoff=membership_tradeoff,
    )
    return templates.get_template("report.j2").render(
        report=report,
        statement=report.statement,
        words=in_words(report.statement),
        releases=[
            {
                "release": record.name,
                "times": record.count,
                "L2 sensitivity": record.l2_sensitivity,
                "noise multiplier": rounded_down(record.noise_multiplier),
                "noise stddev": rounded_down(record.noise_stddev),
                "sampling": record.sampling_prob,
            }
            for record in report.statement.releases
        ],
        event=_event(report.statement),
        rates=np.linspace(0.0, 1.0, 101),
        evaluated=tables_of(report.evaluation),
        audit=_spaced({_AUDITS.get(k, k): v for k, v in (report.audit or {}).items()}),
    )


def _rounded(value: float | None) -> str | None:
    return "∞" if value == math.inf else value if value is None else rounded_up(value)


def _event(statement: PrivacyStatement) -> str | None:
    """Return the releases for a reader's own accountant, if it has a form for them.

    Of one fit without dp-accounting, which takes long to import.
    """
    if statement.selection is not None:
        try:
            return str(statement.event())
        except UnsupportedEventError:
            return None
    return f"ComposedDpEvent(events=[{', '.join(map(_part, statement.releases))}])"


def _part(record: ReleaseRecord) -> str:
    """Return the event of one release, as dp-accounting writes it."""
    if record.noise_multiplier == 0.0:
        return "NonPrivateDpEvent()"
    event = f"GaussianDpEvent(noise_multiplier={float(record.noise_multiplier)!r})"
    if record.sampling_prob < 1.0:
        sampled = f"sampling_probability={record.sampling_prob!r}"
        event = f"PoissonSampledDpEvent({sampled}, event={event})"
    count = record.planned().query.participations
    return f"SelfComposedDpEvent(event={event}, count={count})"


def _spaced(value: Any) -> Any:
    """Return nested values by names with spaces in place of underscores."""
    if isinstance(value, Mapping):
        return {str(key).replace("_", " "): _spaced(v) for key, v in value.items()}
    return [*map(_spaced, value)] if isinstance(value, list | tuple) else value


def _is_nested(value: Any) -> bool:
    """Return whether a value is a mapping, or a list of nothing else."""
    rows = value if isinstance(value, list | tuple) else [value]
    return all(isinstance(row, Mapping) for row in rows)


def format_value(value: Any, *, inside: bool = False) -> str:
    """Return a value as text: numbers with six digits, nested values with commas.

    Examples
    --------
    >>> format_value({"jax": "0.10", "sizes": [1, 0.25], "none": {}})
    'jax: 0.10, sizes: (1, 0.25), none: ()'
    """
    if isinstance(value, float):
        return "∞" if value == math.inf else f"{value:.6g}"
    if isinstance(value, Mapping):
        parts = [f"{k}: {format_value(v, inside=True)}" for k, v in value.items()]
    elif isinstance(value, list | tuple):
        parts = [format_value(part, inside=True) for part in value]
    else:
        return str(value)
    return f"({', '.join(parts)})" if inside else ", ".join(parts)
