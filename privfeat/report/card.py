"""A model card as the Hugging Face hub reads it: YAML front matter and Markdown."""

import json
import re
from typing import Any

from privfeat.report.evaluation import counted_in_words, metrics_of, tables_of
from privfeat.report.guarantee import in_words
from privfeat.report.html import FitReport, load_templates
from privfeat.report.words import UNITS, shifts_of


def render_card(report: FitReport, *, license_name: str = "unknown") -> str:
    """Return the text of a ``README.md`` for a model repository.

    ``license_name`` is an identifier of the hub, such as ``"apache-2.0"``; of the
    **model**, which the licence of the weights and of the data may restrict. Values of
    the front matter are written as JSON, which YAML includes, so that no name can break
    out of them; texts from outside stand in fenced blocks. ImportError if jinja2 or
    matplotlib is missing.
    """
    metadata: dict[str, Any] = {
        "library_name": "privfeat",
        "license": license_name,
        "pipeline_tag": report.task,
        "tags": ["differential-privacy", "privfeat"],
    }
    metrics: list[dict[str, Any]] = []
    measured_on = ""
    if report.evaluation is not None:
        metrics, measured_on = metrics_of(report.evaluation), report.evaluated_on
    if report.calibration is not None:
        measured_on = report.test_name
        accuracy, ece = report.calibration.accuracy, report.calibration.ece
        metrics = [
            {"type": "accuracy", "value": round(accuracy, 6)},
            {"type": "expected_calibration_error", "value": round(ece, 6)},
        ]
    if metrics:
        measured_on = measured_on or "unknown"
        result = {
            "task": {"type": report.task},
            "dataset": {"name": measured_on, "type": measured_on},
            "metrics": metrics,
        }
        metadata["model-index"] = [{"name": report.title, "results": [result]}]
    templates = load_templates(autoescape=False)
    templates.filters.update(as_json=_as_json, plain=_plain, fenced=_fenced)
    return templates.get_template("card.j2").render(
        report=report,
        metadata=metadata,
        words=in_words(report.statement),
        unit=UNITS[report.statement.unit],
        evaluated_unit=None
        if report.evaluation is None
        else UNITS[report.evaluation.privacy.unit],
        counted=counted_in_words(report.evaluation),
        shifted=shifts_of(report.statement),
        recall="\n".join(
            f"{row['class']}: {row['value']} ({row['from']} to {row['to']})"
            for row in tables_of(report.evaluation, report.class_names).get(
                "classes", ()
            )
        ),
    )


def _as_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, indent=indent, ensure_ascii=False, default=str)


def _plain(text: str) -> str:
    """Return text on one line, with what Markdown or HTML would read escaped."""
    return re.sub(r"([\\`*_{}\[\]<>#|&!])", r"\\\1", " ".join(text.split()))


def _fenced(text: str) -> str:
    """Return a block whose fence is longer than any in the text."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"
