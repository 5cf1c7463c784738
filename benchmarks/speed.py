"""How close is ``fit`` to the matrix products that it cannot do without?

Times whole fits, with defaults, against the bare products alone: Gram matrices,
forward and backward products, Cholesky solves, written in NumPy and in JAX, in one
process, one after the other, after compilation. The exact sums of privfeat need float64
products, so that is what the bars compare with; float32 is beside it. Ratios are of
medians.

Then times the gradient of 50,000 bounded rows of 1,280 features against a bare read, a
float32 sum by as many threads, and their Gram matrix against one product.

    python benchmarks/speed.py --out speed.json

``gpu.py`` has what is measured on an accelerator.
"""

import argparse
import os
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from _results import keep_tables, markdown_table, write_json
from scipy.linalg import cho_factor, cho_solve

from privfeat import DPFC, DPAdamLinear, DPLeastSquares, DPNewton
from privfeat.core.sums.processes import Team
from privfeat.core.sums.statistics import exact_gradient, exact_gram
from privfeat.estimation.rows.bounded import BoundedRows

N_ITER = 10
PASS = (50_000, 1_280)
PASS_OUTPUTS = (2, 10, 32)


@dataclass(frozen=True)
class Data:
    """Synthetic features, unit rows, with their labels."""

    X: np.ndarray
    y: np.ndarray
    n_classes: int

    def onehot(self, dtype: Any) -> np.ndarray:
        """Return the label indicators, the shape of residuals."""
        return np.eye(self.n_classes, dtype=dtype)[self.y]


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--size", type=int, nargs=3, default=(50_000, 768, 100))
    parser.add_argument("--newton-classes", type=int, default=10)
    parser.add_argument("--only", default="", help="cases whose name begins so")
    parser.add_argument("--passes", type=int, nargs=2, default=PASS, help="n, d")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    results = measure_ratios(args) | {"passes": measure_passes(args)}
    if args.out:
        write_json(args.out, {"results": results})
    keep_tables(args.out)


def measure_ratios(args: argparse.Namespace) -> dict[str, Any]:
    """Time every estimator and its bare products in turn."""
    n, d, m = args.size
    data, few = synthetic(n, d, m), synthetic(n, d, args.newton_classes)
    cases = {
        "DPFC": (DPFC(**options(m), n_iter=N_ITER), bare_steps, 1.15, data),
        "DPLeastSquares, class Grams": (
            DPLeastSquares(**options(m), class_gram=True),
            bare_least_squares,
            1.3,
            data,
        ),
        "DPNewton, 2 steps": (
            DPNewton(**options(args.newton_classes), n_iter=2),
            bare_newton,
            1.5,
            few,
        ),
        "DPAdamLinear": (
            DPAdamLinear(**options(m), n_iter=N_ITER),
            partial(bare_steps, gram=False),
            1.15,
            data,
        ),
    }
    results, rows = {}, []
    for name, (estimator, bare, bar, case) in cases.items():
        if not name.startswith(args.only):
            continue
        contenders = {
            "fit": partial(estimator.fit, case.X, case.y),
            "NumPy, float64": prepared(bare, case, np.float64, np),
            "JAX, float64": prepared(bare, case, np.float64, jnp),
            "NumPy, float32": prepared(bare, case, np.float32, np),
        }
        seconds = timed_in_turn(contenders, args.repeats)
        fit = seconds.pop("fit")
        ratios = {other: fit / spent for other, spent in seconds.items()}
        results[name] = {"fit": fit, "bare": seconds, "ratios": ratios, "bar": bar}
        shown = [f"{ratios[other]:.2f}" for other in seconds]
        rows.append([name, f"{fit:.2f}", *shown, f"{bar:.2f}"])
        print(f"{name}: {fit:.2f} s", flush=True)
    head = [f"n={n}, d={d}, m={m}", "fit, s", *seconds, "bar"]
    table = markdown_table(head, rows, "products")
    print(f"\nfit over bare products\n\n{table}")
    return results


def measure_passes(args: argparse.Namespace) -> dict[str, Any]:
    """Time gradients and a Gram matrix of bounded rows, and what they cannot avoid."""
    n, d = args.passes
    X = synthetic(n, d, 1).X
    n_threads = len(os.sched_getaffinity(0))
    parts = np.array_split(X, 64)
    rows, wide = bounded(X, 1), X.astype(np.float64)
    with ThreadPoolExecutor(n_threads) as pool:
        contenders = {
            "read": lambda: list(pool.map(np.sum, parts)),
            "Gram matrix": partial(exact_gram, rows),
            "product": lambda: wide.T @ wide,
        }
        for m in PASS_OUTPUTS:
            coef = np.random.default_rng(1).standard_normal((m, d)) / 10.0
            contenders[f"gradient, m={m}"] = partial(
                exact_gradient, bounded(X, m), coef, loss="softmax", clip_norm=1.0
            )
        seconds = timed_in_turn(contenders, args.repeats)
    bars = {f"gradient, m={m}": ("read", 2.0) for m in PASS_OUTPUTS}
    bars["Gram matrix"] = ("product", 1.15)
    table = []
    for name, spent in seconds.items():
        other, bar = bars.get(name, (name, 1.0))
        rate, ratio = 4e-9 * n * d / spent, spent / seconds[other]
        table.append(
            [name, f"{spent:.4f}", f"{rate:.1f}", f"{ratio:.2f}", f"{bar:.2f}"]
        )
    head = [f"n={n}, d={d}", "s", "GB/s", "over read or product", "bar"]
    print(f"\none pass\n\n{markdown_table(head, table, 'passes')}")
    return seconds


def bounded(X: np.ndarray, n_classes: int) -> BoundedRows:
    """Return the records as a fit sums them; the first pass bounds them."""
    labels = np.random.default_rng(2).integers(0, n_classes, (len(X), 1))
    public = {"row_scaling": "unit", "clip_norm": 1.0, "intercept_scaling": None}
    return BoundedRows(X, labels, **public, team=Team(0, 1), private=True)


def options(n_classes: int) -> dict[str, Any]:
    """Return what all fits share; the rest are defaults."""
    return {"epsilon": 1.0, "classes": range(n_classes)}


def synthetic(n: int, d: int, m: int) -> Data:
    """Return unit rows of noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d), np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return Data(X, rng.integers(0, m, n), m)


def prepared(
    bare: Callable[..., Any], data: Data, dtype: Any, xp: Any
) -> Callable[[], None]:
    """Return the bare products with their operands in place."""

    def run() -> None:
        with jax.enable_x64(True):
            jax.block_until_ready(bare(*operands, xp))

    with jax.enable_x64(True):
        X, Y = (xp.asarray(part, dtype) for part in (data.X, data.onehot(dtype)))
        parts = [X[data.y == label] for label in range(data.n_classes)]
        operands = X, Y, parts
    return run


def bare_steps(X: Any, Y: Any, parts: Any, xp: Any, *, gram: bool = True) -> Any:
    """Gram matrix, and the forward and backward products of every step."""
    done = [X.T @ X] if gram else []
    coef = xp.zeros((Y.shape[1], X.shape[1]), X.dtype)
    for _ in range(N_ITER):
        done += [(X @ coef.T)[:1], Y.T @ X]
    return done


def bare_least_squares(X: Any, Y: Any, parts: Any, xp: Any) -> Any:
    """One Gram matrix of all, one of each class, their systems, the class sums."""
    gram, sums = X.T @ X, Y.T @ X
    return [solve(gram + part.T @ part, b) for part, b in zip(parts, sums, strict=True)]


def bare_newton(X: Any, Y: Any, parts: Any, xp: Any) -> Any:
    """Two gradients, one Gram matrix, then one weighted matrix a class, and systems."""
    coef = xp.zeros((Y.shape[1], X.shape[1]), X.dtype)
    done = [(X @ coef.T)[:1], Y.T @ X, X.T @ X, (X @ coef.T)[:1]]
    gradient = Y.T @ X
    for label in range(Y.shape[1]):
        weighted = X * (0.5 + 0.1 * Y[:, label : label + 1])
        done.append(solve(weighted.T @ weighted, gradient[label]))
    return done


def solve(matrix: Any, b: Any) -> Any:
    """Solve a positive definite system."""
    if isinstance(matrix, np.ndarray):
        return cho_solve(cho_factor(matrix + np.eye(len(b), dtype=b.dtype)), b)
    shifted = matrix + jnp.eye(len(b), dtype=b.dtype)
    return jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(shifted), b)


def timed_in_turn(
    contenders: dict[str, Callable[[], Any]], repeats: int
) -> dict[str, float]:
    """Return the median seconds of each, run one after the other again and again."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for run in contenders.values():
        run()  # compiles
    for _ in range(repeats):
        for name, run in contenders.items():
            time.sleep(0.1)  # threads of the last product wait busily for a while
            started = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - started)
    return {name: median(spent) for name, spent in seconds.items()}


if __name__ == "__main__":
    main()
