"""How accurate is a table on the command line, and beside diffprivlib?

Three tables: breast cancer of scikit-learn; people like those of the Adult census, made
(32,561 for training, 5 numbers, a boolean, 6 categories, a fifth of one class); and
200,000 rows of 50 measurements in 50 units, made. Of each the training rows, the test
rows and a declaration are written as files, and ``privfeat fit`` and ``privfeat
predict`` do the rest, with DPFC and what they choose for tables. "without privacy":
scikit-learn's logistic regression behind its StandardScaler, on the same features.
diffprivlib: its StandardScaler, with the bounds of the declaration and a third of
epsilon, and its LogisticRegression, whose ``data_norm`` is the best of several by the
test set; its guarantee has no delta.

    python -m venv dpl && dpl/bin/pip install diffprivlib 'scikit-learn<1.7'
    python benchmarks/tables.py --diffprivlib-python dpl/bin/python --out tables.json

Each repeat has a split, or rows, of its own. Bounds of breast cancer are those of its
published description, rounded outwards.
"""

import argparse
import csv
import json
import math
import tempfile
import time
import tomllib
import warnings
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from _processes import Failed, run_fresh
from _results import keep_tables, markdown_table, write_json
from accuracy import shown
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from privfeat import PublicColumns
from privfeat.cli import main as privfeat

EPSILONS = (0.1, 1.0, 8.0)
# Low and high of means, errors (standard deviations) and worst values of each nucleus.
NUCLEI = {
    "radius": ((5, 30), (0.1, 3), (5, 40)),
    "texture": ((5, 40), (0.3, 5), (10, 50)),
    "perimeter": ((40, 200), (0.7, 22), (50, 260)),
    "area": ((100, 2600), (6, 550), (150, 4300)),
    "smoothness": ((0.05, 0.17), (0.001, 0.04), (0.07, 0.23)),
    "compactness": ((0.01, 0.4), (0.002, 0.14), (0.02, 1.1)),
    "concavity": ((0, 0.45), (0.002, 0.4), (0, 1.3)),
    "concave points": ((0, 0.25), (0.002, 0.06), (0, 0.3)),
    "symmetry": ((0.1, 0.35), (0.005, 0.08), (0.15, 0.7)),
    "fractal dimension": ((0.04, 0.1), (0.0008, 0.03), (0.05, 0.21)),
}
Table = tuple[dict[str, Any], dict[str, Any], dict[str, dict[str, Any]]]


def number(low: float, high: float, **more: Any) -> dict[str, Any]:
    return {"kind": "numeric", "bounds": [low, high], **more}


def category(n: int) -> dict[str, Any]:
    return {"kind": "category", "categories": [f"c{i}" for i in range(n)]}


TARGET = {"kind": "category", "categories": ["0", "1"]}


def split(columns: dict[str, Any], y: Any, n_train: int, seed: int) -> list[Any]:
    """Return the columns of training rows and of test rows."""
    order = np.random.default_rng(seed).permutation(len(y))
    columns = columns | {"y": y}
    return [
        {name: np.asarray(values)[part] for name, values in columns.items()}
        for part in (order[:n_train], order[n_train:])
    ]


def breast_cancer(seed: int) -> Table:
    data = load_breast_cancer()
    columns = dict(zip(map(str, data.feature_names), data.data.T, strict=True))
    declared: dict[str, Any] = {}
    for name in columns:
        kind = next(nucleus for nucleus in NUCLEI if nucleus in name)
        place = 1 if "error" in name else 2 if "worst" in name else 0
        skewed = "error" in name or "area" in name
        more = {"treatment": "log"} if skewed else {}
        declared[name] = number(*NUCLEI[kind][place], **more)
    train, test = split(columns, data.target, 398, seed)
    return train, test, declared | {"y": TARGET}


def people(seed: int) -> Table:
    """Return people of made-up ages, schools, trades and gains, like those of Adult."""
    draw, n = np.random.default_rng(seed), 48_842
    law = np.random.default_rng(0)  # the same for all seeds
    schooling = np.clip(draw.normal(10, 2.6, n).round(), 1, 16)
    age = np.clip(17 + draw.gamma(2.6, 8.3, n), 17, 90).round()
    hours = np.clip(draw.normal(40, 12, n), 1, 99).round()
    gain = np.where(draw.random(n) < 0.08, draw.lognormal(8.6, 1.2, n), 0).round()
    loss = np.where(draw.random(n) < 0.05, draw.normal(1870, 370, n), 0).clip(0).round()
    sizes = {"work": 8, "marriage": 7, "trade": 14, "role": 6, "race": 5, "country": 41}
    codes = {
        k: draw.choice(m, n, p=law.dirichlet(np.ones(m))) for k, m in sizes.items()
    }
    score = 0.33 * (schooling - 10) + 0.03 * (age - 38) + 0.03 * (hours - 40) - 3.3
    score += 1.5 * np.log1p(gain) / 8 + 0.8 * (loss > 1500)
    for name, size in sizes.items():
        weight = 1.2 if name in ("marriage", "role") else 0.5
        score += weight * law.normal(size=size)[codes[name]]
    male = draw.random(n) < 0.67
    y = score + 0.6 * male + draw.logistic(0, 0.9, n) > 0
    columns = {"age": age, "schooling": schooling, "hours": hours, "gain": gain}
    columns |= {"loss": loss, "male": male, "weight": draw.integers(1e4, 1e6, n)}
    columns |= {k: np.char.add("c", c.astype(str)) for k, c in codes.items()}
    declared = {
        "age": number(17, 90),
        "schooling": number(1, 16),
        "hours": number(1, 99),
        "gain": number(100, 100_000, treatment="log"),
        "loss": number(100, 5_000, treatment="log"),
        "male": {"kind": "boolean"},
        "weight": {"kind": "ignored"},
        **{name: category(size) for name, size in sizes.items()},
    }
    train, test = split(columns, y.astype(int), 32_561, seed)
    return train, test, declared | {"y": TARGET}


def measurements(seed: int) -> Table:
    """Return measurements in units from 1e-4 to 1e4, by factors that they share."""
    draw, law = np.random.default_rng(seed), np.random.default_rng(0)
    n, d = 240_000, 50
    unit, offset = 10.0 ** law.uniform(-4, 4, d), law.uniform(-3, 3, d)
    shared = draw.normal(size=(n, 5)) @ law.normal(size=(5, d)) / math.sqrt(5)
    plain = 0.6 * shared + 0.8 * draw.normal(size=(n, d))
    y = plain @ law.normal(size=d) * 0.5 + draw.logistic(size=n) > 0
    columns = {f"m{i}": (plain[:, i] + offset[i]) * unit[i] for i in range(d)}
    declared = {
        f"m{i}": number((offset[i] - 4) * unit[i], (offset[i] + 4) * unit[i])
        for i in range(d)
    }
    train, test = split(columns, y.astype(int), 200_000, seed)
    return train, test, declared | {"y": TARGET}


TABLES = {
    "breast cancer, 398 x 30": (breast_cancer, 10),
    "like Adult, 32,561 x 13": (people, 3),
    "measurements, 200,000 x 50": (measurements, 1),
}


def written(folder: Path, table: Table) -> None:
    """Write the files that a user has."""
    for name, columns in zip(("train", "test"), table, strict=False):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            values = [v.tolist() for v in map(np.asarray, columns.values())]
            writer.writerows(zip(*values, strict=True))
    # what JSON has of these is TOML as well
    text = "\n".join(
        f"[{json.dumps(name)}]\n"
        + "".join(f"{key} = {json.dumps(value)}\n" for key, value in said.items())
        for name, said in table[2].items()
    )
    tomllib.loads(text)
    (folder / "columns.toml").write_text(text)


def by_command(folder: Path, *of: Any) -> tuple[float, float]:
    """Return the accuracy of the command line on the test rows, and its seconds."""
    begun, (epsilon, seed, scale) = time.perf_counter(), of
    model, out = folder / "model", folder / "predicted.csv"
    fit = ["--estimator", "DPFC", "--epsilon", epsilon, "--train", folder / "train.csv"]
    fit += ["--columns", folder / "columns.toml", "--target", "y", "--seed", seed]
    fit += ["--scale", scale]
    predict = ["--model", model, "--features", folder / "test.csv", "--out", out]
    for words in (
        ["fit", *fit, "--out", model, "--overwrite", "--quiet"],
        ["predict", *predict],
    ):
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()) as said:
            status = privfeat([str(word) for word in words])
        assert not status, said.getvalue()
    with out.open(newline="") as file:
        found = np.array([int(row["name"]) for row in csv.DictReader(file)])
    with (folder / "test.csv").open(newline="") as file:
        y = np.array([int(row["y"]) for row in csv.DictReader(file)])
    return float(np.mean(found == y)), time.perf_counter() - begun


def by_diffprivlib(folder: str, seed: int, args: argparse.Namespace) -> dict[str, Any]:
    """Return the accuracies of diffprivlib, by epsilon and by the norm of rows."""
    script = Path(__file__).with_name("_diffprivlib.py")
    words = (Path(folder, "rows.npz"), seed, *(f"{epsilon:g}" for epsilon in EPSILONS))
    try:
        return run_fresh(
            script, words, python=args.diffprivlib_python, limit=args.limit
        )
    except Failed as error:
        print(f"diffprivlib: {error}", flush=True)
        return {}


def arrays(table: Table) -> tuple[Any, ...]:
    """Return features and classes of training and test rows."""
    import pandas as pd

    declared = {name: said for name, said in table[2].items() if name != "y"}
    columns, found = PublicColumns(declared), []
    for part in table[:2]:
        frame = pd.DataFrame({k: v for k, v in part.items() if k != "y"})
        found += [columns.transform(frame), part["y"]]
    return tuple(found)


def without_privacy(table: Table) -> float:
    X, y, T, t = arrays(table)
    plain = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return float(plain.fit(X, y).score(T, t))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--scale", default="public", help="of `fit`")
    parser.add_argument("--repeats", type=int, help="instead of 10, 3 and 1")
    parser.add_argument("--diffprivlib-python", type=Path)
    parser.add_argument("--limit", type=float, help="seconds of diffprivlib a repeat")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    results: dict[str, Any] = {}
    for number_of in args.tables:
        name = list(TABLES)[number_of]
        make, repeats = TABLES[name]
        cells: dict[str, Any] = {"plain": [], "seconds": []}
        for seed in range(args.repeats or repeats):
            table = make(seed)
            cells["plain"].append(without_privacy(table))
            with tempfile.TemporaryDirectory() as folder:
                written(Path(folder), table)
                names = ("X", "y", "T", "t")
                rows = dict(zip(names, arrays(table), strict=True))
                np.savez(Path(folder, "rows.npz"), **rows)
                for epsilon in EPSILONS:
                    of = epsilon, seed, args.scale
                    accuracy, seconds = by_command(Path(folder), *of)
                    cells.setdefault(f"privfeat {epsilon:g}", []).append(accuracy)
                    cells["seconds"].append(seconds)
                if args.diffprivlib_python is not None:
                    for epsilon, scores in by_diffprivlib(folder, seed, args).items():
                        theirs = cells.setdefault(f"diffprivlib {epsilon}", {})
                        for norm, score in scores.items():
                            theirs.setdefault(norm, []).append(score)
        results[name] = cells
        print(name, "done", flush=True)
    print(printed(results))
    if args.out:
        write_json(args.out, {"accuracy": results})
        keep_tables(args.out)


def printed(results: dict[str, Any]) -> str:
    """Return mean accuracies in per cent, with standard errors."""
    rows = []
    for name, cells in results.items():
        plain = np.array(cells["plain"])
        for epsilon in EPSILONS:
            ours = np.array(cells[f"privfeat {epsilon:g}"])
            others = cells.get(f"diffprivlib {epsilon:g}", {"": [math.nan]})
            theirs = max(map(np.mean, others.values()))
            rows.append(
                [
                    name,
                    f"{epsilon:g}",
                    f"{100 * plain.mean():.2f}",
                    f"{100 * ours.mean():.2f}",
                    shown(list(plain - ours)),
                    "not run" if math.isnan(theirs) else f"{100 * theirs:.2f}",
                    f"{np.median(cells['seconds']):.1f}",
                ]
            )
    header = ["table", "epsilon", "without privacy, %", "privfeat, %", "lost, points"]
    header += ["diffprivlib, %", "fit and predict, s"]
    return markdown_table(rows=rows, header=header, name="tables")


if __name__ == "__main__":
    main()
