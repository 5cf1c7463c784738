"""How long fits take that no one waits for: a count of operations over measured rates.

With n records, d features, m classes and T steps, floating-point operations are

    gradient products    4 n d m for each gradient (scores forward, sums backward)
    Gram matrices        n d (d + 1), symmetric
    d x d systems        10 d^3 for an eigendecomposition, d^3 / 3 for a Cholesky
    passes               n d values, read from a file and bounded, for each pass

and a fit takes

    (gradient / r_gradient + Gram / r_gram + passes n d (1 / r_bound + bytes / r_disk))
    / devices + systems / r_systems

seconds: records are divided among the devices, each of which reads its share from
its own disk; systems are solved by one. Reading does not overlap with arithmetic.
A pass serves as many matrices of classes as fit into a gibibyte. Left out: noise;
sending sums of m d or d^2 numbers between devices once a step.
"""

import math
from dataclasses import dataclass

STORED_BYTES = 2  # of a value in a feature file, float16
TOGETHER_BYTES = 2**30
CHUNK_ROWS = 2**10


@dataclass(frozen=True)
class Work:
    """What a fit computes, in operations, and how often it reads all records."""

    gradient: float
    gram: float
    systems: float
    passes: float


@dataclass(frozen=True)
class Rates:
    """Of one device: operations, values (``bound``) and bytes (``disk``) a second."""

    gradient: float
    gram: float
    systems: float
    bound: float
    disk: float


def work(estimator: str, n: float, d: float, m: float, steps: float) -> Work:
    """Return the work of an estimator with its defaults; ``steps`` is ``n_iter``.

    ``DPLeastSquares`` is the one with a Gram matrix per class.
    """
    products, gram = 4 * n * d * m, n * d * (d + 1)
    eigen, cholesky = 10 * d**3, d**3 / 3
    # the first pass of each is that of the mean
    if estimator == "DPFC":
        return Work(steps * products, gram, eigen, 2 + steps)
    if estimator == "DPAdamLinear":
        return Work(steps * products, 0.0, 0.0, 1 + steps)
    if estimator == "DPLeastSquares":
        # class sums are products with indicators; a record is in one class
        per_class = 8 * d**2 + 4 * CHUNK_ROWS * d
        passes = 3 + math.ceil(m * per_class / TOGETHER_BYTES)
        return Work(products / 2, 2 * gram, m * cholesky, passes)
    if estimator == "DPNewton":
        # a Gram matrix at first, then one block for each class
        later, passes = steps - 1, math.ceil(8 * m * d**2 / TOGETHER_BYTES)
        return Work(
            (steps + later / 2) * products,
            (1 + later * m) * gram,
            eigen + later * m * cholesky,
            3 + later * (1 + passes),
        )
    raise ValueError(f"estimator must be one with known work, got {estimator!r}.")


def seconds(work: Work, rates: Rates, n: float, d: float, devices: int) -> float:
    """Return the time of a fit by the formula above."""
    shared = work.gradient / rates.gradient + work.gram / rates.gram
    shared += work.passes * n * d * (1 / rates.bound + STORED_BYTES / rates.disk)
    return shared / devices + work.systems / rates.systems


def duration(value: float) -> str:
    """Return seconds as a reader wants them."""
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if value >= 2 * size:
            return f"{value / size:.1f} {unit}"
    return f"{value:.1f} s"
