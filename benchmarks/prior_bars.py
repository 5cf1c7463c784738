"""In how many cells does a public prior meet its bar?

Reads what ``prior.py``, ``few.py`` and ``texts.py`` measured, fits nothing, and judges
both halves of the bar over all cells:

- *kept*: accuracy is at least the better of the prior alone and of no prior, less half
  a point. In brackets the cells that miss this by more than two standard errors.
- *above both*: it is above the better of the two. Judged where both are below 80 %,
  far from 100. A wrong prior has nothing to give, so that half of its cells are above
  no prior by chance.

The second half needs the prior alone, which ``texts.py`` does not measure.

    python benchmarks/prior_bars.py --out benchmarks/results/prior_bars.json
"""

import argparse
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _results import RESULTS, keep_tables, markdown_table, write_json
from prior import MARGIN

FAR = 80.0  # percent: both are below it
HEADER = ("file", "set, estimator, prior", "kept", "above both")


def main() -> None:
    """Print one table of all files, and write its counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    rows, judged = [], {}
    for path in sorted(RESULTS.glob("prior_*.json")) + sorted(RESULTS.glob("texts*")):
        result = json.loads(path.read_text(encoding="utf-8"))
        found = judge(few_of(result) if "test" in result else cells_of(result))
        for name, counts in found.items():
            rows.append([path.stem, name, *shown(counts)])
        judged |= {f"{path.stem}: {name}": counts for name, counts in found.items()}
    for part, label in (("right", "right priors"), ("", "all priors")):
        some = [
            counts
            for name, counts in judged.items()
            if not (part and name.endswith(("half wrong", "random")))
        ]
        rows.append(["", label, *shown(np.sum(some, axis=0).tolist())])
    print(markdown_table(HEADER, rows, "bars"))
    if args.out:
        write_json(args.out, {"judged": judged})
    keep_tables(args.out)


def cells_of(result: dict[str, Any]) -> Iterator[tuple[str, Any, Any, float | None]]:
    """Yield names, accuracies in percent without and with a prior, and alone."""
    cells, alone = result.get("cells", {}), result.get("alone")
    for name, scores in cells.items():
        where, epsilon = name.rsplit(", ", 1)
        if alone:  # set, estimator, prior, epsilon
            kind, prior = where.rsplit(", ", 1)
            if prior != "none":
                without = np.array(cells[f"{kind}, none, {epsilon}"])
                yield where, without, np.array(scores), alone[where]
        elif "names as prior" in name:
            without = cells[name.replace("names as prior", "no prior")]
            kind = result["settings"].get("estimator", "DPFC")
            where = where.replace(", names", f", {kind}, names")
            yield where, 100 * np.array(without), 100 * np.array(scores), None


def few_of(result: dict[str, Any]) -> Iterator[tuple[str, Any, Any, float | None]]:
    """Yield the same of fits to few records."""
    test = result["test"]
    for name, cells in test.items():
        estimator, comma, prior = name.partition(", ")
        if comma:
            kind, epsilon = prior.split()
            where = f"{result['set']}, few records, {estimator}, {kind}"
            for number, scores in cells.items():
                without = 100 * np.array(test[f"{estimator} {epsilon}"][number])
                alone = 100 * float(np.mean(test[f"{kind} alone {epsilon}"][number]))
                yield where, without, 100 * np.array(scores), alone


def judge(cells: Any) -> dict[str, list[int]]:
    """Return numbers of cells: all, kept, far below the bar, judged, above both."""
    found: dict[str, list[int]] = {}
    for name, without, scores, alone in cells:
        best, error = float(np.mean(without)), error_of(without)
        if alone is not None and alone > best:
            best, error = alone, 0.0
        gap = float(np.mean(scores)) - best
        error = math.hypot(error, error_of(scores))
        far = alone is not None and best < FAR
        counts = (
            1,
            gap >= -MARGIN,
            gap < -MARGIN - 2.0 * error,
            far,
            far and gap > 0.0,
        )
        earlier = found.get(name, [0] * len(counts))
        found[name] = [a + int(b) for a, b in zip(earlier, counts, strict=True)]
    return found


def error_of(scores: Any) -> float:
    """Return the standard error of a mean."""
    return float(np.std(scores, ddof=1)) / math.sqrt(len(scores))


def shown(counts: list[int]) -> tuple[str, str]:
    """Return both halves as a table has them."""
    n_cells, kept, missed, judged, above = counts
    beyond = f" ({missed} beyond two errors)" if missed else ""
    return f"{kept} of {n_cells}{beyond}", f"{above} of {judged}" if judged else "-"


if __name__ == "__main__":
    main()
