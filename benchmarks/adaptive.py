"""How much do the parameters of adaptive clipping matter?

Van der Veen et al. 2018, section 2.2, says: little. Fits a multilayer perceptron with
Adam at its defaults, with constant and with adaptive bounds for each layer, on four
fifths of the split ``train`` of a feature file. Prints the accuracy on the rest, and by
how many points it is above that of the defaults:

    python benchmarks/adaptive.py mnist5k.h5 --out adaptive.json

Every change is of one parameter alone, from adaptive clipping with ``clip_norm=1``.
Fits of one repeat share rows, initial parameters, samples and noise: differences are
paired.
"""

import argparse
import math
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _results import Cells, keep_tables, markdown_table, settings_of

import privfeat

ADAPTIVE = {"clipping": "adaptive", "clip_style": "layerwise"}
DEFAULT = "adaptive, clip_norm = 1"
CHANGES: dict[str, dict[str, tuple[float, ...]]] = {
    "constant bound": {"clip_norm": (0.01, 0.1, 1.0, 10.0, 100.0)},
    "adaptive": {
        "clip_norm": (0.5, 1.0, 1.1, 2.0),  # alpha
        "norm_beta": (1.0, 2.0, 4.0, 8.0),
        "norm_share": (0.025, 0.1, 0.15),
        "initial_clip_norm": (1e-3, 1.0, 1e3),
    },
}


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("features", type=Path)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1, 8])
    parser.add_argument("--epochs", type=float, default=20)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    table_of(Cells(args.out, settings_of(args)), args)
    keep_tables(args.out)


def table_of(kept: Cells, args: Any) -> None:
    """Measure what is not yet kept, and print all of it."""
    table = []
    for clipping, parameters in CHANGES.items():
        for name, values in parameters.items():
            for value in values:
                params = {"clip_style": "layerwise", name: value}
                params |= ADAPTIVE if clipping == "adaptive" else {}
                row = f"{clipping}, {name} = {value:g}"
                table.append([row])
                for epsilon in args.epsilons:
                    measure = partial(scores, args, epsilon, params)
                    found = kept.get(f"{row}, {epsilon:g}", measure)
                    default = partial(scores, args, epsilon, ADAPTIVE)
                    usual = kept.get(f"{DEFAULT}, {epsilon:g}", default)
                    table[-1] += [shown(found), shown(np.subtract(found, usual))]
                print(" | ".join(table[-1]), flush=True)
    header = [f"{e:g}{word}" for e in args.epsilons for word in ("", ", above")]
    print(markdown_table(["epsilon", *header], table, "robustness"))


def scores(args: Any, epsilon: float, params: dict[str, Any]) -> list[float]:
    """Return the accuracy of each repeat on the rows that were held out."""
    file = privfeat.open_features(args.features)
    X, y = file["train"].X[:], file["train"].y
    found = []
    for repeat in range(args.repeats):
        order = np.random.default_rng(repeat).permutation(len(y))
        held_out, fitted = np.split(order, [len(y) // 5])
        clf = privfeat.DPSGDClassifier(
            model="mlp",
            epsilon=epsilon,
            classes=range(len(file.class_names)),
            epochs=args.epochs,
            random_state=repeat,
            **params,
        ).fit(X[fitted], y[fitted])
        found.append(float(clf.score(X[held_out], y[held_out])))
    return found


def shown(accuracies: Any) -> str:
    """Return mean and standard error, in percent."""
    found = 100.0 * np.array(accuracies)
    error = found.std(ddof=1) / math.sqrt(len(found)) if len(found) > 1 else math.nan
    return f"{found.mean():.1f} ± {error:.1f}"


if __name__ == "__main__":
    main()
