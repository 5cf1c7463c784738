"""A model card as the Hugging Face hub reads it: YAML front matter and Markdown."""

import json
import re
from typing import Any

from privfeat.report.guarantee import in_words
from privfeat.report.html import FitReport

__all__ = ["render_card"]


def render_card(report: FitReport, *, license_name: str = "unknown") -> str:
    """Return the text of a ``README.md`` for a model repository.

    Parameters
    ----------
    report : FitReport
    license_name : str
        An identifier of the hub, such as ``"apache-2.0"``; of the **model**, which the
        licence of the weights and of the data may restrict.

    Notes
    -----
    Values of the front matter are written as JSON, which YAML includes, so that no name
    can break out of them; texts from outside stand in fenced blocks.
    """
    data = (report.provenance or {}).get("dataset") or "unknown"
    metadata: dict[str, Any] = {
        "library_name": "privfeat",
        "license": license_name,
        "pipeline_tag": report.task,
        "tags": ["differential-privacy", "privfeat"],
    }
    if report.calibration is not None:
        measured = {
            "accuracy": report.calibration.accuracy,
            "expected_calibration_error": report.calibration.ece,
        }
        metadata["model-index"] = [
            {
                "name": report.title,
                "results": [
                    {
                        "task": {"type": report.task},
                        "dataset": {"name": str(data), "type": str(data)},
                        "metrics": [
                            {"type": name, "value": round(value, 6)}
                            for name, value in measured.items()
                        ],
                    }
                ],
            }
        ]
    front = "\n".join(
        f"{key}: {json.dumps(value, ensure_ascii=False)}"
        for key, value in metadata.items()
    )
    parts = [
        f"---\n{front}\n---",
        f"# {_plain(report.title)}",
        _plain(report.kind),
        "## Privacy",
        *in_words(report.statement),
        _fenced(str(report.statement)),
        "The guarantee covers the training records of this fit alone: not what a "
        "network saw in pretraining, not other models of the same records.",
    ]
    if report.calibration is not None:
        parts += [
            "## Accuracy",
            _fenced(str(report.calibration)),
            "Measured on test records whose labels are public; the guarantee does not "
            "cover these numbers.",
        ]
    if report.provenance:
        text = json.dumps(
            dict(report.provenance), indent=2, ensure_ascii=False, default=str
        )
        parts += ["## Data and weights", _fenced(text)]
    if report.reproduce:
        parts += ["## How to reproduce", _fenced(report.reproduce)]
    return "\n\n".join(parts) + "\n"


def _plain(text: str) -> str:
    """Return text on one line, with what Markdown or HTML would read escaped."""
    return re.sub(r"([\\`*_{}\[\]<>#|&!])", r"\\\1", " ".join(text.split()))


def _fenced(text: str) -> str:
    """Return a block whose fence is longer than any in the text."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"
