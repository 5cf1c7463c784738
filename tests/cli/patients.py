"""The table of these tests, its declaration, and the command that fits it."""

import csv

import numpy as np

COLUMNS = """
[patient]
kind = "ignored"
[age]
kind = "integer"
bounds = [20, 80]
[smoker]
kind = "boolean"
missing = "indicator"
[clinic]
kind = "category"
categories = ["Bonn", "Kiel"]
[outcome]
kind = "category"
categories = ["well", "ill", "unknown"]
"""
HEADER = ["patient", "age", "smoker", "clinic", "outcome"]
SECRET = "1234567"


def rows_of(n_rows, seed):
    """Return rows of patients who are ill if they are old."""
    draw = np.random.default_rng(seed)
    for i in range(n_rows):
        age = int(draw.integers(20, 81))
        smoker, clinic = draw.choice(["yes", "no", ""]), draw.choice(["Bonn", "Kiel"])
        yield [f"p{i // 2}", age, smoker, clinic, "ill" if age > 50 else "well"]


def write(path, rows, header=HEADER):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def fit(folder, *more, train="train.csv", target="outcome"):
    """Return the words of a fit with a budget of 20."""
    return (
        *("fit", "--estimator", "DPLeastSquares", "--epsilon", 20, "--delta", 1e-6),
        *("--train", folder / train, "--columns", folder / "columns.toml"),
        *("--target", target, *more),
    )
