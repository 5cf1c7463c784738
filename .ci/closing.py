"""Add up the closing lines of several runs of pytest: ``closing.py LOG SECONDS NAMES``.

Prints one closing line for all. Fails if a run has no closing line, if tests failed, or
if no test passed; names the runs in which none did.
"""

import re
import sys
from collections import Counter
from pathlib import Path

# "== 3 passed, 1 skipped in 2.10s ==", or without the bars after -q
CLOSING = re.compile(
    r"(?:=+ )?((?:\d+ [a-z]+(?:, )?)+) in [\d.]+s(?: \([\d:]+\))?(?: =+)?$"
)
BAD = ("failed", "error", "errors")
ORDER = (*BAD, "passed", "skipped", "deselected", "xfailed", "xpassed")


def counts_of(log):
    """Return what each closing line counts."""
    found = filter(None, (CLOSING.match(line) for line in log.splitlines()))
    return [
        Counter({word: int(count) for count, word in re.findall(r"(\d+) (\w+)", m[1])})
        for m in found
    ]


def close(log, seconds, names):
    """Return the lines to print, and whether all is well."""
    runs = counts_of(log)
    lines = [
        f"NOTHING RAN by make {name}: {run['skipped']} tests were skipped."
        for name, run in zip(names, runs, strict=False)
        if not run["passed"]
    ]
    complete = len(runs) == len(names)
    if not complete:
        lines = [f"{len(names)} runs of pytest should have ended, and {len(runs)} did."]
    total = sum(runs, Counter())
    words = [word for word in ORDER if total[word]]
    shown = ", ".join(f"{total[word]} {word}" for word in words) or "no tests ran"
    lines.append(f"==== {shown} in {seconds:.2f}s ====")
    well = complete and total["passed"] and not any(total[w] for w in BAD)
    return lines, bool(well)


if __name__ == "__main__":
    text = Path(sys.argv[1]).read_text(encoding="utf-8", errors="replace")
    lines, well = close(text, float(sys.argv[2]), sys.argv[3:])
    sys.stdout.write("\n".join(lines) + "\n")
    sys.exit(not well)
