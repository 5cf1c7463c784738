"""One process of ``growth.py``: time and memory of a fit, or a machine's rates.

python _growth_cell.py fit ESTIMATOR n d m T repeats
python _growth_cell.py rates n d m repeats folder
python _growth_cell.py together port index repeats        # in two processes
"""

import json
import os
import statistics
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _processes import peak_mib

import privfeat
from privfeat.core.sums.processes import Team
from privfeat.data import write_features


def main() -> None:
    """Print the measurements as JSON."""
    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    if sys.argv[1] == "fit":
        name, *sizes = sys.argv[2:]
        print(json.dumps(measure_fit(name, *map(int, sizes))))
    elif sys.argv[1] == "together":
        print(json.dumps(measure_reductions(*map(int, sys.argv[2:]))))
    else:
        *sizes, folder = sys.argv[2:]
        print(json.dumps(measure_rates(*map(int, sizes), Path(folder))))


def measure_fit(
    name: str, n: int, d: int, m: int, steps: int, repeats: int
) -> dict[str, float]:
    """Return the time after compilation, and the memory above that of a tiny fit."""
    parameters: dict[str, Any] = {"n_iter": steps}
    if name == "DPLeastSquares":
        parameters = {"class_gram": True}
    median(name, made(10, 2, 2), 2, 0, **parameters)
    libraries = peak_mib()
    data = made(n, d, m)
    return {
        "seconds": median(name, data, m, repeats, **parameters),
        "mib": peak_mib() - libraries,
    }


def measure_rates(n: int, d: int, m: int, repeats: int, folder: Path) -> dict[str, Any]:
    """Return operations, values and bytes a second, from differences of fits."""
    X, y = made(2 * n, d, m)
    half = X[:n], y[:n] % 2
    plain = {"center": False}
    # one pass that bounds rows, one Gram matrix, m = 2
    short = median("DPLeastSquares", half, 2, repeats, **plain)
    long = median("DPLeastSquares", (X, y % 2), 2, repeats, **plain)
    centred = median("DPLeastSquares", half, 2, repeats)
    tiny = median("DPLeastSquares", (X[:1024], y[:1024] % 2), 2, repeats, **plain)
    few, many = (
        median("DPAdamLinear", (X[:n], y[:n]), m, repeats, n_iter=T, **plain)
        for T in (2, 6)
    )
    bound = n * d / difference(centred, short)
    return {
        "gradient": 4 * (4 * n * d * m) / difference(many, few),
        "gram": n * d * (d + 1) / difference(long - n * d / bound, short),
        "systems": 10 * d**3 / tiny,
        "bound": bound,
        "disk": disk_rate(X.astype(np.float16), folder),
    }


def measure_reductions(port: int, index: int, repeats: int) -> dict[str, float]:
    """Return bytes and reductions a second of sums that two processes add up."""
    from privfeat.distributed import initialize

    address = f"localhost:{port}"
    initialize(coordinator_address=address, num_processes=2, process_id=index)
    team = Team(index, 2)

    def seconds(size: int) -> float:
        values, times = np.full(size, float(index)), []
        for _ in range(2 + 5 * repeats):
            start = time.perf_counter()
            team.total(values)
            times.append(time.perf_counter() - start)
        return statistics.median(times[2:])  # the first compiles

    short, long = seconds(1), seconds(2**20)
    return {
        "network": 8 * 2**20 / difference(long, short),
        "reductions": 1 / short,
    }


def disk_rate(X: np.ndarray, folder: Path) -> float:
    """Return the bytes a second at which an uncached feature file is read."""
    path = folder / "rates.h5"
    labels = np.zeros(len(X), int)
    copies = max(1, 2**28 // X.nbytes)  # at least a quarter of a gigabyte
    big = np.concatenate([X] * copies)
    write_features(path, {"train": (big, np.tile(labels, copies))}, dtype=str(X.dtype))
    with path.open("rb") as file:
        os.fsync(file.fileno())
        if hasattr(os, "posix_fadvise"):  # else from the cache of the system
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    start = time.perf_counter()
    rows = privfeat.open_features(path)["train"].X[:]
    seconds = time.perf_counter() - start
    path.unlink()
    return float(rows.nbytes / seconds)


def median(name: str, data: Any, m: int, repeats: int, **parameters: Any) -> float:
    """Return the median time of a fit, after one that compiles."""
    times = []
    for _ in range(1 + repeats):
        estimator = getattr(privfeat, name)(classes=range(m), **parameters)
        start = time.perf_counter()
        estimator.fit(*data)
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:] or times)


def difference(long: float, short: float) -> float:
    """Return the time that the longer of two fits takes more."""
    if not long > short:
        raise ValueError("sizes must differ measurably, got none. Pass larger ones.")
    return long - short


def made(n: int, d: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return features and labels; every class occurs if ``n >= m``."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, d), dtype=np.float32), np.arange(n) % m


if __name__ == "__main__":
    main()
