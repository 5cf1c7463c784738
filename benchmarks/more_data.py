"""What does more data buy: a better model for less epsilon, as Sander et al. say?

    python benchmarks/more_data.py --features cifar10.h5

Sander, Stock & Sablayrolles 2023, Section 4.4 and Table 5: at constant batch size,
noise multiplier and number of steps, epsilon falls as the number of records grows, and
accuracy rises. Measured on the first records of a feature file, in random order: a
softmax layer (or ``--model``) trained by DP-SGD with the same settings throughout; and
DPFC at a fixed epsilon, and at the epsilon that `privfeat plan --data-factor` says has
the noise of the fewest records. The planned loss stands beside the measured one.
"""

import argparse
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
from _results import keep_tables, markdown_table, write_json
from _small_sets import check_batch

from privfeat import DPFC, DPSGDClassifier, open_features
from privfeat._messages import without_warnings
from privfeat.analysis.planning import plan
from privfeat.analysis.tan import TAN
from privfeat.exceptions import PrivacyWarning


def main() -> None:
    """Fit at each number of records; print and keep the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--features", type=Path, required=True)
    sizes = (5_000, 10_000, 25_000, 40_000, 50_000)
    parser.add_argument("--sizes", nargs="+", type=int, default=sizes)
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--noise-multiplier", type=float, default=3.0)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--learning-rate", type=float, default=0.002)
    parser.add_argument("--model", default="mlp")
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    file = open_features(args.features)
    X, y, X_test, y_test = (
        part[:] for name in ("train", "test") for part in (file[name].X, file[name].y)
    )
    order = np.random.default_rng(0).permutation(len(X))
    X, y, classes = X[order], y[order], range(int(y.max()) + 1)
    check_batch(args.batch_size, min(args.sizes), "--batch-size")
    if max(args.sizes) > len(X):
        raise SystemExit(
            f"--sizes must be at most the rows of the file, got {max(args.sizes)} for "
            f"{len(X)}."
        )
    least, found = args.sizes[0], []
    for size in args.sizes:
        data = X[:size], y[:size], X_test, y_test
        tan = TAN(args.batch_size / size, args.noise_multiplier, args.steps)
        network = DPSGDClassifier(
            model=args.model,
            noise_multiplier=args.noise_multiplier,
            delta=1.0 / size,
            expected_batch_size=args.batch_size,
            n_iter=args.steps,
            learning_rate=args.learning_rate,
            classes=classes,
        )
        outlook = plan(
            *(least, X.shape[1], len(classes)),
            epsilon=args.epsilon,
            delta=args.delta,
            data_factor=size / least,
            estimators=["DPFC"],
        )
        linear, budgets = DPFC(delta=args.delta, classes=classes), {}
        for epsilon in (args.epsilon, outlook.same_noise_epsilon):
            budgets[epsilon] = scores(linear.set_params(epsilon=epsilon), data, args)
        same = outlook.same_noise_epsilon
        found.append(
            {
                "records": size,
                "network_epsilon": tan.epsilon(1.0 / size),
                "network": scores(network, data, args),
                "planned_loss": outlook.more_data[0].expected_loss,
                "dpfc": budgets[args.epsilon],
                "dpfc_at_1000": scores(linear.set_params(epsilon=1e3), data, args, 1),
                "same_noise_epsilon": same,
                "dpfc_same_noise": budgets[same],
            }
        )
        print(found[-1], flush=True)
    header = [
        "records",
        "network: epsilon",
        "accuracy",
        f"DPFC at {args.epsilon:g}",
        "at 1,000",
        "planned loss",
        "measured loss",
        "same noise: epsilon",
        "accuracy of DPFC",
    ]
    rows = []
    for row in found:
        free, noisy = row["dpfc_at_1000"][0], fmean(row["dpfc"])
        rows.append(
            [
                f"{row['records']:,}",
                f"{row['network_epsilon']:.3g}",
                cell(row["network"]),
                cell(row["dpfc"]),
                f"{100 * free:.1f}",
                f"{row['planned_loss']:.1%}",
                f"{1 - noisy / free:.1%}",
                f"{row['same_noise_epsilon']:.3g}",
                cell(row["dpfc_same_noise"]),
            ]
        )
    print(markdown_table(header, rows, "more data"))
    if args.out:
        write_json(args.out, {"rows": found})
    keep_tables(args.out)


def scores(
    estimator: object, data: tuple, args: argparse.Namespace, n_repeats: int = 0
) -> list[float]:
    """Return the test accuracies of fits with fresh noise."""
    X, y, X_test, y_test = data
    with without_warnings(PrivacyWarning):  # of a large delta, or no noise
        return [
            float(estimator.fit(X, y).score(X_test, y_test))
            for _ in range(n_repeats or args.repeats)
        ]


def cell(values: list[float]) -> str:
    """Return mean and standard deviation in per cent; one fit has none."""
    mean = f"{100 * fmean(values):.1f}"
    return f"{mean} ± {100 * stdev(values):.1f}" if len(values) > 1 else mean


if __name__ == "__main__":
    main()
