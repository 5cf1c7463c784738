"""What every benchmark prints and keeps: a Markdown table, and JSON with provenance."""

import json
import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = ("privfeat", "jax", "numpy", "scipy", "scikit-learn", "dp-accounting")


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return an aligned Markdown table."""
    table = [list(header), *map(list, rows)]
    widths = [max(len(row[i]) for row in table) for i in range(len(header))]
    lines = [
        "| "
        + " | ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True))
        + " |"
        for row in table
    ]
    lines.insert(1, "|" + "|".join("-" * (w + 2) for w in widths) + "|")
    return "\n".join(lines)


def provenance() -> dict[str, Any]:
    """Return date, machine and versions."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "versions": {name: version(name) for name in PACKAGES},
    }


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a result with its provenance."""
    text = json.dumps(provenance() | content, indent=2)
    path.write_text(text + "\n", encoding="utf-8")


def read_earlier(path: Path | None, settings: dict[str, Any]) -> dict[str, Any]:
    """Return what a run on this machine with the same settings wrote; {} if nothing.

    Raises
    ------
    SystemExit
        If the file holds results of other settings, another machine or other versions.
    """
    if path is None or not path.exists():
        return {}
    found = dict(json.loads(path.read_text(encoding="utf-8")))
    same = provenance() | {"settings": settings, "date": found.get("date")}
    # as JSON has it: tuples are lists there
    if any(found.get(key) != json.loads(json.dumps(same[key])) for key in same):
        raise SystemExit(
            f"--out must be a new file or one of the same settings, machine and "
            f"versions, got {path}. Pass another."
        )
    return found


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"
