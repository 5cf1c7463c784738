"""One self-contained HTML file about a fit: no script, no network.

The texts are in ``templates/``. jinja2 escapes all values but the charts, which are
markup and hold no text from outside.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from privfeat._checks import require
from privfeat.core.accounting.plan import ReleaseRecord
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.core.statement.rounding import rounded_down, rounded_up
from privfeat.exceptions import UnsupportedEventError
from privfeat.report.evaluation import counted_in_words, recall_rows, tables_of
from privfeat.report.guarantee import (
    epsilon_delta_curve,
    in_words,
    membership_tradeoff,
    several_records,
)
from privfeat.report.ledger import LedgerSummary
from privfeat.report.svg import bar_chart, line_chart
from privfeat.report.words import (
    ACCOUNTINGS,
    RELEASES,
    UNITS,
    named,
    neighbours,
    shifts_of,
)

if TYPE_CHECKING:
    from jinja2 import Environment

    from privfeat.analysis.calibration import CalibrationReport
    from privfeat.metrics.intervals import Estimate
    from privfeat.metrics.measuring import Evaluation

# What `privfeat audit --out` writes, in words.
_AUDITS = {
    "replay": "Replay: how far each sum moves without one record, and may move",
    "noise": "Noise: what was drawn over what is declared",
    "one_run": "One fit with planted records: epsilon is at least",
    "membership": "Membership inference by the loss, and what the guarantee allows (of "
    "few rows chance alone may find more)",
}
_TOGETHER = {"record": "records of one person", "user": "users together"}


@dataclass(frozen=True)
class FitReport:
    """What a report is made of; everything but the first two is optional."""

    title: str
    statement: PrivacyStatement
    # when it was written, of which data, and who answers for it
    date: str = ""
    dataset: str = ""
    responsible: str = ""
    class_names: Sequence[str] = ()  # else their numbers stand for the classes
    # on public test records: calibration, and recall of each class; or of a regressor
    # figures by their names; and where the records are from
    calibration: "CalibrationReport | None" = None
    recall: "Estimate | None" = None
    errors: Mapping[str, float] | None = None
    test_name: str = ""
    # of private test records, and what these are called
    evaluation: "Evaluation | None" = None
    evaluated_on: str = ""
    # of the same records; without it the report says that it is unknown what was spent
    ledger: LedgerSummary | None = None
    # of private test records, and of others that choices were made by; ``holds_fit`` is
    # of the evaluation
    test_ledgers: Sequence[LedgerSummary] = ()
    audit: Mapping[str, Any] | None = None  # as ``privfeat audit --out`` writes it
    audited: str = ""  # what was other in it than in the fit
    features: str = ""  # what they are, in sentences
    columns: Sequence[Mapping[str, Any]] = ()  # `privfeat.report.columns.columns_of`
    provenance: Mapping[str, Any] | None = None  # data and weights by name
    checksums: Mapping[str, str] | None = None  # SHA-256 of each file, by its path
    reproduce: str | None = None  # how to fit such a model again
    kind: str = "A model trained with differential privacy by privfeat."
    task: str = "image-classification"  # as the Hugging Face hub names it


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

    ImportError if jinja2 or matplotlib is missing.
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
    statement, names = report.statement, report.class_names
    recall, found = report.recall, report.evaluation
    return templates.get_template("report.j2").render(
        report=report,
        statement=statement,
        words=in_words(statement),
        unit=UNITS[statement.unit],
        neighbours=neighbours(statement.unit, statement.adjacency),
        accounting=ACCOUNTINGS[statement.accounting],
        several=_several(statement) if statement.private else [],
        releases=[_release(record) for record in statement.releases],
        event=_event(statement),
        rates=np.linspace(0.0, 1.0, 101),
        evaluated=tables_of(found, names),
        found_unit=None if found is None else UNITS[found.privacy.unit],
        counted=counted_in_words(found),
        shifted=shifts_of(statement),
        named_items=[(named(k), v) for k, v in (report.provenance or {}).items()],
        recall=[] if recall is None else recall_rows(recall, names),
        audit=_spaced({_AUDITS.get(k, k): v for k, v in (report.audit or {}).items()}),
    )


def _several(statement: PrivacyStatement) -> list[dict[str, Any]]:
    """Return what is left of the guarantee for several units of one person."""
    numbers, name = (1, 2, 5, 10), _TOGETHER[statement.unit]
    left = [several_records(statement, number) for number in numbers]
    return [
        {name: str(number), "ε": rounded_up(epsilon, 3), "δ": rounded_up(delta, 3)}
        for number, (epsilon, delta) in zip(numbers, left, strict=True)
    ]


def _release(record: ReleaseRecord) -> dict[str, Any]:
    """Return what the report shows of one release."""
    step, _, name = record.name.rpartition(".")
    what = RELEASES.get(name, named(name))
    return {
        "what": f"{step}: {what}" if step else what,
        "times": record.count,
        "L2 sensitivity": record.l2_sensitivity,
        "noise multiplier": rounded_down(record.noise_multiplier),
        "noise stddev": rounded_down(record.noise_stddev),
        "each record": "always"
        if record.sampling_prob == 1.0
        else f"with probability {record.sampling_prob:.6g}",
    }


def _rounded(value: float | None) -> str | None:
    return "∞" if value == math.inf else value if value is None else rounded_up(value)


def _event(statement: PrivacyStatement) -> str | None:
    """Return the releases for a reader's own accountant, if it has a form for them.

    That of one fit is written here: dp-accounting takes long to import.
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
        return {named(key): _spaced(v) for key, v in value.items()}
    return [*map(_spaced, value)] if isinstance(value, list | tuple) else value


def _is_nested(value: Any) -> bool:
    """Return whether a value is a mapping, or a list of nothing else."""
    rows = value if isinstance(value, list | tuple) else [value]
    return all(isinstance(row, Mapping) for row in rows)


def format_value(value: Any, *, inside: bool = False) -> str:
    """Return a value as text: numbers with six digits, nested values with commas.

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
