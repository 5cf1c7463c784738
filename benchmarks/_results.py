"""What every benchmark prints and keeps: Markdown tables, and JSON with provenance.

The files in ``benchmarks/results/`` have one shape: ``command``, ``commit``, ``date``,
``source`` ("run", or from where the figures were copied), machine and versions;
``tables``, ``{name: {"header": [...], "rows": [[...]]}}``, as they were printed; and
the figures that the tables were made of. ``table.py`` prints them again.
"""

import json
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PACKAGES = ("privfeat", "jax", "numpy", "scipy", "scikit-learn", "dp-accounting")

RESULTS = Path(__file__).with_name("results")
# What this process printed under a name, for `keep_tables`.
_PRINTED: dict[str, dict[str, Any]] = {}


def markdown_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], name: str = ""
) -> str:
    """Return an aligned Markdown table; `keep_tables` keeps one with a name."""
    table = [list(header), *map(list, rows)]
    if name:
        _PRINTED[name] = {"header": table[0], "rows": table[1:]}
    widths = [max(len(row[i]) for row in table) for i in range(len(header))]
    lines = [
        "| "
        + " | ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True))
        + " |"
        for row in table
    ]
    lines.insert(1, "|" + "|".join("-" * (w + 2) for w in widths) + "|")
    return "\n".join(lines)


def require(package: str, what: str) -> None:
    """End a script, with the line that installs what no extra of ours brings."""
    if find_spec(package) is None:
        raise SystemExit(f"{package} is needed {what}: pip install {package}")


def provenance() -> dict[str, Any]:
    """Return command, commit, date, machine and versions."""
    return {
        "command": _command(),
        "commit": _commit(),
        "source": "run",
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "versions": {name: _version(name) for name in PACKAGES},
    }


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a result with its provenance."""
    text = json.dumps(provenance() | content, indent=1, ensure_ascii=False)
    # lists of numbers or words in one line: files of many fits are half as large
    text = re.sub(r"\[\n[^][{}]*\]", lambda found: _joined(found[0]), text)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")


def _joined(text: str) -> str:
    """Return a list of scalars in one line; no string holds a line break in JSON."""
    return re.sub(r"\n *", " ", text).replace("[ ", "[").replace(" ]", "]")


def keep_tables(path: Path | None) -> None:
    """Add the tables that were printed to the result that this process wrote, if any.

    Called at the end of every benchmark.
    """
    if path is not None:
        content = json.loads(path.read_text(encoding="utf-8"))
        tables = content.get("tables", {}) | _PRINTED
        write_json(path, content | provenance() | {"tables": tables})


def read_earlier(path: Path | None, settings: dict[str, Any]) -> dict[str, Any]:
    """Return what a run on this machine with the same settings wrote; {} if nothing.

    Raises
    ------
    SystemExit
        If the file holds results of other settings, another machine, commit or
        versions.
    """
    if path is None or not path.exists():
        return {}
    found = dict(json.loads(path.read_text(encoding="utf-8")))
    free = {key: found.get(key) for key in ("date", "command")}
    same = provenance() | {"settings": settings} | free
    # as JSON has it: tuples are lists there
    if any(found.get(key) != json.loads(json.dumps(same[key])) for key in same):
        raise SystemExit(
            f"--out must be a new file or one of the same settings, machine, commit "
            f"and versions, got {path}. Pass another."
        )
    return found


class Cells:
    """The figures of a run, in the file of its result after each cell.

    A run that was stopped continues where it was: what the file holds already is not
    measured again. ``content`` is what is written: the settings, the cells, and what
    else a script puts there. For other settings or another commit see `read_earlier`.
    """

    def __init__(self, path: Path | None, settings: dict[str, Any]) -> None:
        self.path = path
        self.content = read_earlier(path, settings) or {"settings": settings}

    def get(self, name: str, measure: Callable[[], Any]) -> Any:
        """Return the figures of a cell, which are measured once."""
        cells = self.content.setdefault("cells", {})
        if name not in cells:
            cells[name] = measure()
            self.save()
        return cells[name]

    def save(self) -> None:
        """Write all figures, and the tables that were printed."""
        if self.path:
            tables = self.content.get("tables", {}) | _PRINTED
            content = self.content | provenance() | {"tables": tables}
            write_json(self.path, content)


def settings_of(args: Any, *left_out: str) -> dict[str, Any]:
    """Return the arguments of a script that its cells depend on.

    Files go by their names; ``out`` is left out, and what else changes no cell.
    """

    def plain(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [plain(each) for each in value]
        return value.name if isinstance(value, Path) else value

    left = {"out", *left_out}
    return {key: plain(v) for key, v in vars(args).items() if key not in left}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _command() -> str:
    """Return the command, files of the user by their names alone."""
    # alone, or behind the name that an argument gives them
    arguments = [re.sub(r"(?:^|(?<==))/.*/(?=.)", "", a) for a in sys.argv[1:]]
    script = Path(sys.argv[0])
    return shlex.join(["python", f"{script.parent.name}/{script.name}", *arguments])


def _commit() -> str:
    """Return the commit, with ``+`` where files that are tracked differ from it."""
    here = Path(__file__).parent

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=here, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    try:
        # what is measured does not depend on what was measured before
        written = (":!results", ":!RESULTS.md")
        differs = git("status", "--porcelain", "-uno", "--", ":/", *written)
        return git("rev-parse", "--short=7", "HEAD") + ("+" if differs else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"
