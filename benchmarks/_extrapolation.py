"""How long fits take that no one waits for: a count of operations over measured rates.

With n records, d features, m classes and T steps, floating-point operations are

    gradient products    4 n d m for each gradient (scores forward, sums backward)
    Gram matrices        n d (d + 1), symmetric
    d x d systems        10 d^3 for an eigendecomposition, d^3 / 3 for a Cholesky
    passes               n d values, read from a file and bounded, for each pass

and a fit takes

    (gradient / r_gradient + Gram / r_gram + passes n d / r_bound
    + (passes + 1) n d bytes / r_disk) / devices + systems / r_systems

seconds: records are divided among the devices, each of which reads its share from
its own disk, once more before the charge; systems are solved by one. Reading does not
overlap with arithmetic.
A pass serves as many matrices of classes as fit into a gibibyte. k > 1 devices also
take

    reductions (k - 1) / r_reductions + 2 (k - 1) / k bytes / r_network

seconds to add up their sums: every sum is reduced, and its release sent to all, in a
ring, at the rates at which two processes do it. Left out: noise.
"""

import math
from dataclasses import dataclass

STORED_BYTES = 2  # of a value in a feature file, float16
SENT_BYTES = 8  # of a value of a sum, float64
TOGETHER_BYTES = 2**30
CHUNK_ROWS = 2**10


@dataclass(frozen=True)
class Work:
    """What a fit computes, in operations, how often it reads all records, and sends.

    ``sums`` are released, of ``values`` numbers in all; the mean has a count.
    """

    gradient: float
    gram: float
    systems: float
    passes: float
    sums: float
    values: float


@dataclass(frozen=True)
class Rates:
    """Of one device: operations, values (``bound``) and bytes (``disk``) a second.

    And of two that add up: bytes (``network``) and reductions a second.
    """

    gradient: float
    gram: float
    systems: float
    bound: float
    disk: float
    network: float
    reductions: float


def work(estimator: str, n: float, d: float, m: float, steps: float) -> Work:
    """Return the work of an estimator with its defaults; ``steps`` is ``n_iter``.

    ``DPLeastSquares`` is the one with a Gram matrix per class.
    """
    products, gram = 4 * n * d * m, n * d * (d + 1)
    eigen, cholesky = 10 * d**3, d**3 / 3
    # the first pass of each is that of the mean
    if estimator == "DPFC":
        values = d + 1 + d**2 + steps * m * d
        return Work(steps * products, gram, eigen, 2 + steps, 2 + steps, values)
    if estimator == "DPAdamLinear":
        values = d + 1 + steps * m * d
        return Work(steps * products, 0.0, 0.0, 1 + steps, 1 + steps, values)
    if estimator == "DPLeastSquares":
        # class sums are products with indicators; a record is in one class
        per_class = 8 * d**2 + 4 * CHUNK_ROWS * d
        passes = 3 + math.ceil(m * per_class / TOGETHER_BYTES)
        values = d + 1 + m * d + (1 + m) * d**2
        return Work(products / 2, 2 * gram, m * cholesky, passes, 3 + m, values)
    if estimator == "DPNewton":
        # a Gram matrix at first, then one block for each class
        later, passes = steps - 1, math.ceil(8 * m * d**2 / TOGETHER_BYTES)
        return Work(
            (steps + later / 2) * products,
            (1 + later * m) * gram,
            eigen + later * m * cholesky,
            3 + later * (1 + passes),
            2 + steps + later * m,
            d + 1 + d**2 + steps * m * d + later * m * d**2,
        )
    raise ValueError(f"estimator must be one with known work, got {estimator!r}.")


def seconds(work: Work, rates: Rates, n: float, d: float, devices: int) -> float:
    """Return the time of a fit by the formula above."""
    shared = work.gradient / rates.gradient + work.gram / rates.gram
    shared += work.passes * n * d / rates.bound
    shared += (work.passes + 1) * n * d * STORED_BYTES / rates.disk
    # what is added up is sent back as a release
    sent = 2 * work.values * SENT_BYTES / rates.network * 2 * (devices - 1) / devices
    sent += 2 * work.sums / rates.reductions * (devices - 1)
    return shared / devices + work.systems / rates.systems + sent


def duration(value: float) -> str:
    """Return seconds as a reader wants them."""
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if value >= 2 * size:
            return f"{value / size:.1f} {unit}"
    return f"{value:.1f} s"
