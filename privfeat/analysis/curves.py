"""Accuracies that were measured with few records, between which `planning` looks.

``few_records.json`` holds, for each set, accuracies of the estimators with their
defaults and standard errors, by records per class and epsilon (delta 1e-5, add/remove),
and which command and commit measured them. They were measured on training rows that
were kept apart, on no test row.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import RegularGridInterpolator

_FILE = Path(__file__).with_name("few_records.json")


@dataclass(frozen=True)
class Measured:
    """An accuracy in [0, 1], and the standard error of its mean over draws."""

    accuracy: float
    error: float


def measured_accuracy(
    estimators: Sequence[str], records_per_class: float, n_classes: int, epsilon: float
) -> dict[str, Measured]:
    """Return what the estimators reached, between the cells that were measured.

    Those that were not measured are left out. Below the least epsilon that was
    measured, in proportion fewer records count as at that one: the ratio of their sums
    to the noise is the same, about. Else a value out of range stands for the nearest
    one that was measured; both must be > 0.

    Linear in the logarithms of records per class and epsilon, for each set; then the
    mean of sets with as many classes, linear in the logarithm of the number of classes.
    It ranks estimators; your own accuracy depends on your classes.
    """
    found: dict[int, list[dict[str, NDArray[np.float64]]]] = {}
    for measured in _sets():
        cells = _between_cells(measured, records_per_class, epsilon)
        kept = {name: cells[name] for name in cells if name in estimators}
        found.setdefault(measured["n_classes"], []).append(kept)
    sizes = sorted(found)
    place = np.interp(math.log(n_classes), np.log(sizes), np.arange(len(sizes)))
    between = {}
    for name in found[sizes[0]][0]:
        means = [np.mean([one[name] for one in found[size]], axis=0) for size in sizes]
        low = min(int(place), len(sizes) - 2)
        pair = (1.0 - place + low) * means[low] + (place - low) * means[low + 1]
        between[name] = Measured(*map(float, pair))
    return between


def accuracy_of_each_set(
    estimator: str, records_per_class: float, epsilon: float
) -> dict[str, float]:
    """Return what an estimator reached on each set, as `measured_accuracy` does.

    >>> for name, accuracy in accuracy_of_each_set("DPFC", 100, 1.0).items():
    ...     print(name, round(accuracy, 2))
    banking77 (77 classes) 0.81
    cifar10_128 (10 classes) 0.46
    mnist5k (10 classes) 0.85
    """
    return {
        f"{one['name']} ({one['n_classes']} classes)": float(
            _between_cells(one, records_per_class, epsilon)[estimator][0]
        )
        for one in _sets()
    }


def _between_cells(
    measured: dict[str, Any], records_per_class: float, epsilon: float
) -> dict[str, NDArray[np.float64]]:
    """Return accuracy and error of each estimator on one set, by its name."""
    count = records_per_class * min(1.0, epsilon / min(measured["epsilons"]))
    axes = [np.log(measured[name]) for name in ("records_per_class", "epsilons")]
    point = [
        np.clip(math.log(value), axis[0], axis[-1])
        for value, axis in zip((count, epsilon), axes, strict=True)
    ]
    return {
        name: RegularGridInterpolator(axes, np.array(table))(point)[0]
        for name, table in measured["cells"].items()
    }


@cache
def _sets() -> list[dict[str, Any]]:
    return list(json.loads(_FILE.read_text(encoding="utf-8"))["sets"])
