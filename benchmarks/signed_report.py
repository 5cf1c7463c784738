"""How long is the way from a CSV file to a report that can be signed?

    python benchmarks/signed_report.py --out signed_report.json

Runs the guide ``docs/guides/signed-report.md`` as it stands, in a new folder: its
Python in one process, which makes the table and fills in the declaration, and each of
its commands in a fresh process, whose time on the wall is taken. Medians of several
runs. The cache of compiled code is empty in the first one and full in the others.
"""

import argparse
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _results import keep_tables, markdown_table, settings_of, write_json

GUIDE = Path(__file__).parents[1] / "docs" / "guides" / "signed-report.md"
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BAR_S, BAR_COMMANDS = 180.0, 6


def main() -> None:
    """Print the seconds of each command and of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        runs = [times(cache) for _ in range(args.runs)]
    first, later = runs[0], runs[1:] or runs
    rows = [
        [f"`{name}`", f"{first[name]:.1f} s", f"{statistics.median(found):.1f} s"]
        for name in first
        for found in [[run[name] for run in later]]
    ]
    total = statistics.median(sum(run.values()) for run in later)
    rows.append(["all", f"{sum(first.values()):.1f} s", f"{total:.1f} s"])
    met = "yes" if sum(first.values()) < BAR_S and len(first) <= BAR_COMMANDS else "no"
    rows.append([f"below {BAR_S:g} s, {BAR_COMMANDS} commands", met, ""])
    header = ["command", "first time", "later, median"]
    print(markdown_table(header, rows, "seconds"))
    if args.out:
        write_json(args.out, {"settings": settings_of(args), "seconds": runs})
        keep_tables(args.out)


def times(cache: str) -> dict[str, float]:
    """Return the seconds of each command of the guide."""
    found: dict[str, float] = {}
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    given = {"PATH": programs, "PRIVFEAT_COMPILATION_CACHE": cache}
    with tempfile.TemporaryDirectory() as folder:

        def run(*command: str) -> None:
            subprocess.run(
                command,
                cwd=folder,
                env=os.environ | given,
                stdout=subprocess.DEVNULL,
                check=True,
            )

        for language, code in BLOCK.findall(GUIDE.read_text(encoding="utf-8")):
            if language == "python":
                run(sys.executable, "-c", code)
                continue
            for line in code.splitlines():
                begun = time.perf_counter()
                run("sh", "-c", line)
                found[" ".join(shlex.split(line)[:2])] = time.perf_counter() - begun
        report = Path(folder, "report.html").read_text(encoding="utf-8")
    if "<h2>Signature</h2>" not in report:
        raise SystemExit("the guide must end with a report, and wrote none.")
    return found


if __name__ == "__main__":
    main()
