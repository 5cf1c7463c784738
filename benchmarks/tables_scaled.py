"""What does private scaling of columns give a table, and what does it cost?

"as declared": DPFC as ``privfeat fit`` has it for a table. "scaled privately": a tenth
of the budget for `DPStandardScaler`, the rest for DPFC with the parameters of
`after_scaling`, on the same features; two charges, whose sum is the epsilon of the row.
"without privacy": scikit-learn's logistic regression behind its StandardScaler.

    python benchmarks/tables_scaled.py --out scaled.json

Each repeat has a split of its own. Breast cancer and the people are those of
``tables.py``. Wine, diabetes (above 140 or not) and digits are scikit-learn's; their
bounds are those of the data, a quarter of their range further out on both sides, which
is not private: they serve to compare both ways alone.
"""

import argparse
import math
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _results import keep_tables, markdown_table, write_json
from sklearn.datasets import load_diabetes, load_digits, load_wine
from tables import (
    EPSILONS,
    Table,
    arrays,
    breast_cancer,
    number,
    people,
    split,
    without_privacy,
)

from privfeat import DPFC, PublicColumns
from privfeat.core.accounting.calibration import mu_from_epsilon
from privfeat.preprocessing import DPStandardScaler, after_scaling

SCALING_SHARE = 0.1  # of rho


def small(load: Any, seed: int) -> Table:
    """Return a table of scikit-learn, with bounds that its values suggest."""
    data = load()
    codes = (data.target > 140 if load is load_diabetes else data.target).astype(int)
    values = data.data[:, np.ptp(data.data, axis=0) > 0]
    columns = {f"m{i}": column for i, column in enumerate(values.T)}
    declared = {
        name: number(column.min() - gap, column.max() + gap)
        for name, column in columns.items()
        for gap in [np.ptp(column) / 4]
    }
    train, test = split(columns, codes, int(0.7 * len(codes)), seed)
    classes = [str(label) for label in range(int(codes.max()) + 1)]
    return train, test, declared | {"y": {"kind": "category", "categories": classes}}


TABLES = {
    "breast cancer, 398 x 30": breast_cancer,
    "wine, 124 x 13": partial(small, load_wine),
    "diabetes, 309 x 10": partial(small, load_diabetes),
    "digits, 1,257 x 61": partial(small, load_digits),
    "like Adult, 32,561 x 13": people,
}


def accuracies(table: Table, epsilon: float, seed: int) -> tuple[float, float]:
    """Return the accuracy of DPFC as declared, and scaled privately."""
    X, y, T, t = arrays(table)
    declared = {name: said for name, said in table[2].items() if name != "y"}
    classes = np.arange(len(table[2]["y"]["categories"]))
    norm = PublicColumns(declared).clip_norm
    options = {"row_scaling": "clip", "clip_norm": norm, "random_state": seed}
    plain = DPFC(epsilon=epsilon, classes=classes, **options).fit(X, y)
    rho = mu_from_epsilon(epsilon, 1e-5, "exact") ** 2 / 2
    scaler = DPStandardScaler(
        bounds=(-1.0, 1.0), rho=SCALING_SHARE * rho, random_state=seed + 1000
    ).fit(X)
    options = {**after_scaling(X.shape[1]), "random_state": seed + 2000}
    scaled = DPFC(rho=(1.0 - SCALING_SHARE) * rho, classes=classes, **options)
    scaled.fit(scaler.transform(X), y)
    return plain.score(T, t), scaled.score(scaler.transform(T), t)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", nargs="+", type=int, default=range(len(TABLES)))
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    results: dict[str, Any] = {}
    for number_of in args.tables:
        name, make = list(TABLES.items())[number_of]
        cells: dict[str, list[float]] = {"plain": []}
        for seed in range(args.repeats):
            table = make(seed)
            cells["plain"].append(without_privacy(table))
            for epsilon in EPSILONS:
                plain, scaled = accuracies(table, epsilon, seed)
                cells.setdefault(f"declared {epsilon:g}", []).append(plain)
                cells.setdefault(f"scaled {epsilon:g}", []).append(scaled)
        results[name] = cells
        print(name, "done", flush=True)
    print(printed(results))
    if args.out:
        write_json(args.out, {"accuracy": results})
        keep_tables(args.out)


def printed(results: dict[str, Any]) -> str:
    """Return mean accuracies in per cent, with the standard error of their difference.

    Of what private scaling gives, and of what is lost to a model without privacy.
    """
    rows = []
    for name, cells in results.items():
        plain = np.array(cells["plain"])
        for epsilon in EPSILONS:
            declared = np.array(cells[f"declared {epsilon:g}"])
            scaled = np.array(cells[f"scaled {epsilon:g}"])
            means = [f"{100 * one.mean():.2f}" for one in (plain, declared, scaled)]
            more = [_difference(scaled - declared), _difference(plain - scaled)]
            rows.append([name, f"{epsilon:g}", *means, *more])
    header = ["table", "epsilon", "without privacy, %", "as declared, %"]
    header += ["scaled privately, %", "more, points", "lost, points"]
    return markdown_table(rows=rows, header=header, name="scaled")


def _difference(gain: Any) -> str:
    error = np.std(gain, ddof=1) / math.sqrt(len(gain)) if len(gain) > 1 else 0.0
    return f"{100 * gain.mean():+.2f} ± {100 * error:.2f}"


if __name__ == "__main__":
    main()
