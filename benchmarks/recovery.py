"""What part of the distance to accuracy without privacy is recovered?

Reads what other benchmarks measured, fits nothing, and prints in percent ``(with -
without) / (non-private - without)`` at each epsilon, no cell counted above 100 nor
below -100, and the mean over the cells of a row:

    python benchmarks/recovery.py --out benchmarks/results/recovery.json

*Without views or priors*: `DPFC` with its defaults, from the best method of the papers
that was tuned on the test rows. *With*: `DPFC` with views, or with a prior, from
`DPFC` with neither. Non-private is logistic regression on one view of the same rows.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from _results import RESULTS, keep_tables, markdown_table, write_json
from accuracy import BASELINE, TUNED

EPSILONS = ("0.01", "0.1", "0.5", "1", "2", "8")
# Results with the tuned methods, and with `DPFC`, of each set.
SETS = {
    "cifar10_128": ("accuracy_cifar10_128", "accuracy_cifar10_128"),
    "cifar10_64": ("cifar10_64", "accuracy_cifar10_64"),
    "digits": ("digits_tuned", "digits_tuned"),
    "mnist5k": ("mnist5k", "mnist5k"),
    "text": ("text", "accuracy_text"),
}
ONE_VIEW = "as it is"
Means = dict[str, float]


def main() -> None:
    """Print the table and write its numbers."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    rows, parts = [], {}
    for name, without, with_it, best in (*tuned(), *views(), *priors()):
        found = {
            epsilon: recovered(without[epsilon], with_it[epsilon], best)
            for epsilon in EPSILONS
            if epsilon in without and epsilon in with_it and without[epsilon] < best
        }
        cells = [f"{found[e]:.0f}" if e in found else "-" for e in EPSILONS]
        rows.append([name, f"{best:.1f}", *cells, f"{mean(found):.1f}"])
        parts[name] = found
    print(markdown_table(["", BASELINE, *EPSILONS, "mean"], rows, "recovery"))
    if args.out:
        write_json(args.out, {"recovered": parts})
    keep_tables(args.out)


def recovered(without: float, with_it: float, best: float) -> float:
    """Return the part of the distance in percent, within -100 and 100."""
    return float(np.clip(100.0 * (with_it - without) / (best - without), -100, 100))


def tuned() -> Iterator[tuple[str, Means, Means, float]]:
    """Yield `DPFC` beside the best tuned methods; old runs left their tables alone."""
    for kind, (others, ours) in SETS.items():
        there, here = means_of(others, kind), means_of(ours, kind)
        # a method that was tuned without noise may be better than regression
        known = [*there[BASELINE].values()]
        if kind == "cifar10_128":
            cells = read("table3_cifar10")["cells"].values()
            known += [
                100.0 * float(np.mean(cell["scores"]))
                for cell in cells
                if cell["epsilon"] == np.inf
            ]
        yield f"{kind}, beside tuned", there[TUNED], here["DPFC"], max(known)


def means_of(name: str, kind: str) -> dict[str, Means]:
    """Return the means of each row of a table."""
    table = read(name)["tables"][kind]
    return {
        row[0]: {
            epsilon: float(cell.split()[0])
            for epsilon, cell in zip(table["header"][1:], row[1:], strict=True)
            if cell != "-"
        }
        for row in table["rows"]
    }


def views() -> Iterator[tuple[str, Means, Means, float]]:
    """Yield more views beside one."""
    cells = read("views_mobilenetv2")["cells"]
    for name, found in cells.items():
        network, _, variant = name.partition(", ")
        if variant != ONE_VIEW and not variant.endswith(BASELINE):
            best = 100.0 * cells[f"{network}, {ONE_VIEW}, {BASELINE}"]
            one = percent(cells[f"{network}, {ONE_VIEW}"])
            yield f"{network}, views: {variant}", one, percent(found), best


def priors() -> Iterator[tuple[str, Means, Means, float]]:
    """Yield names of classes as prior beside none."""
    cells = read("prior_banking77")["cells"]

    def of(prior: str) -> Means:
        start = f"Banking77, DPFC, {prior}, "
        return {e: float(np.mean(cells[start + e])) for e in EPSILONS}

    free = read("accuracy_banking77")["accuracy"]["banking77"][BASELINE]["inf"]
    yield "banking77, prior: names", of("none"), of("names"), 100.0 * free[0]


def read(name: str) -> dict:
    """Return a result."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def percent(scores: dict[str, list[float]]) -> Means:
    """Return means in percent."""
    return {epsilon: 100.0 * float(np.mean(each)) for epsilon, each in scores.items()}


def mean(found: Means) -> float:
    """Return the mean of the cells of a row."""
    return float(np.mean(list(found.values()))) if found else float("nan")


if __name__ == "__main__":
    main()
