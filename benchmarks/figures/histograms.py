"""How sure is a private classifier, of its own answer and of the true class?

    python benchmarks/figures/histograms.py quickstart/digits.h5 --out histograms.png

Figures 2 and 11 of Bu, Wang & Long 2023 for `DPFC` on a feature file: histograms of the
largest probability, and of that of the true class. For public data: the fit spends its
budget, and the measures are exact.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import privfeat
from privfeat.analysis.calibration import CalibrationReport, report_of


def main() -> None:
    """Fit, and draw both histograms."""
    from matplotlib.figure import Figure

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("features", type=Path)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--out", type=Path, required=True, help="of the figure")
    args = parser.parse_args()
    file = privfeat.open_features(args.features)
    train, test = file["train"], file["test"]
    clf = privfeat.DPFC(epsilon=args.epsilon, classes=range(len(file.class_names)))
    report = report_of(clf.fit(train.X, train.y), test.X, test.y)
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    draw_confidence(report, left)
    draw_true_class(report, right)
    figure.savefig(args.out, dpi=150)
    mean, true_class = report.confidence.mean(), report.true_class
    print(f"accuracy {report.accuracy:.3f}, mean confidence {mean:.3f}")
    low, high = np.mean(true_class < 0.1), np.mean(true_class > 0.9)
    print(f"true class: below 0.1 in {low:.1%}, above 0.9 in {high:.1%} of records")
    print(f"{args.out} written")


def draw_confidence(report: CalibrationReport, ax: Any) -> None:
    """Draw Figure 2: the largest probability, its mean, and the accuracy."""
    _draw(report.confidence, report, ax)
    mean = float(report.confidence.mean())
    ax.axvline(mean, color="0.3", linestyle="--", label="mean confidence")
    ax.axvline(report.accuracy, color="k", label="accuracy")
    ax.set_xlabel("confidence")
    ax.legend()


def draw_true_class(report: CalibrationReport, ax: Any) -> None:
    """Draw Figure 11: the probability of the true class."""
    _draw(report.true_class, report, ax)
    ax.set_xlabel("probability of the true class")


def _draw(values: np.ndarray, report: CalibrationReport, ax: Any) -> None:
    ax.hist(values, report.bin_edges, weights=np.full(len(values), 1 / len(values)))
    ax.set_xlim(0, 1)
    ax.set_ylabel("part of the records")


if __name__ == "__main__":
    main()
