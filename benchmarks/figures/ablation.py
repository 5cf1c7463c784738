"""How do accuracy and calibration depend on clip norm and learning rate?

    python benchmarks/figures/ablation.py quickstart/digits.h5 --out ablation.png

Figure 3 of Bu, Wang & Long 2023, for `DPAdamLinear` on a feature file: a map of one
measure, one fit in each cell. At one budget all cells are equally private (Fact 5.1).
For public data: every fit spends its budget, and the measures are exact.
"""

import argparse
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

import privfeat
from privfeat.analysis.calibration import report_of

METRICS = ("accuracy", "ece", "mce", "nll", "brier")


def main() -> None:
    """Fit all cells, and write the map."""
    from matplotlib.figure import Figure

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("features", type=Path)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--clip-norms", nargs="+", type=float, default=[0.1, 0.3, 1, 3])
    parser.add_argument("--rates", nargs="+", type=float, default=[0.01, 0.1, 1.0])
    parser.add_argument("--n-iter", type=int, default=100)
    parser.add_argument("--metric", choices=METRICS, default="ece")
    parser.add_argument("--out", type=Path, required=True, help="of the figure")
    args = parser.parse_args()
    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    file = privfeat.open_features(args.features)
    train, test = file["train"], file["test"]
    clf = privfeat.DPAdamLinear(epsilon=args.epsilon, n_iter=args.n_iter)
    values = clip_norm_ablation(
        clf, args.clip_norms, args.rates, train.X, train.y, test.X, test.y
    )
    figure = Figure(layout="constrained")
    ax = figure.subplots()
    draw_map(values[args.metric], args.clip_norms, args.rates, ax)
    ax.set_title(args.metric, loc="left")
    figure.savefig(args.out, dpi=150)
    print(f"{args.metric}, by rate {' '.join(f'{rate:g}' for rate in args.rates)}")
    for norm, row in zip(args.clip_norms, values[args.metric], strict=True):
        print(f"clip norm {norm:g}: {' '.join(f'{value:.3f}' for value in row)}")
    print(f"{args.out} written")


def clip_norm_ablation(
    estimator: Any,
    clip_norms: Sequence[float],
    learning_rates: Sequence[float],
    X: Any,
    y: ArrayLike,
    X_test: Any,
    y_test: ArrayLike,
    *,
    clip_parameter: str = "gradient_clip_norm",
) -> dict[str, NDArray[np.float64]]:
    """Fit a clone of a classifier at every clip norm and learning rate.

    Returns each of ``METRICS`` on the test records, of shape (n_clip_norms,
    n_learning_rates). ``clip_parameter`` is the name of the estimator's clip norm.
    """
    shape = (len(clip_norms), len(learning_rates))
    values = {name: np.empty(shape) for name in METRICS}
    for i, clip_norm in enumerate(clip_norms):
        for j, rate in enumerate(learning_rates):
            settings = {clip_parameter: clip_norm, "learning_rate": rate}
            fitted = clone(estimator).set_params(**settings).fit(X, y)
            report = report_of(fitted, X_test, y_test)
            for name in METRICS:
                values[name][i, j] = getattr(report, name)
    return values


def draw_map(
    values: NDArray[np.float64],
    clip_norms: Sequence[float],
    learning_rates: Sequence[float],
    ax: Any,
) -> None:
    """Draw one measure as a heat map whose cells show their values."""
    ax.imshow(values, cmap="viridis", origin="lower", aspect="auto")
    middle = 0.5 * (np.nanmin(values) + np.nanmax(values))
    for (i, j), value in np.ndenumerate(values):
        color = "white" if value < middle else "black"
        ax.text(j, i, f"{value:.3f}", ha="center", va="center", color=color)
    rows, columns = values.shape
    ax.set_xticks(range(columns), [f"{rate:g}" for rate in learning_rates])
    ax.set_yticks(range(rows), [f"{norm:g}" for norm in clip_norms])
    ax.set_xlabel("learning rate")
    ax.set_ylabel("clip norm")


if __name__ == "__main__":
    main()
