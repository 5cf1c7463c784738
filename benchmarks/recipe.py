"""Clip norm and rate by the recipe of Kurakin et al. 2022, Section 3.3, on images.

    python benchmarks/recipe.py cifar10-images.tar.xz --records 5000 --public 2500 \\
        --out recipe.json

Images are ``train/<class>/*.jpg``, and ``test/`` likewise, in a folder or an archive.
The first ``--records`` of the training images are private, the next ``--public`` ones
public: the recipe sees the public ones alone, half of the test images among them, and
the other half measures. Two tables: what the recipe tries; and private fits with what
it chooses, beside other rates and clip norms, which no user could compare for free.
"""

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _results import keep_tables, markdown_table, write_json
from dpsgd_accuracy import percent, read_images

from privfeat import DPSGDClassifier
from privfeat.analysis.tuning.clipping import CLIP_NORMS, clipping_recipe

SETTINGS = ("model", "records", "public", "size", "epsilon", "epochs", "batch")
SETTINGS += ("clip_norms", "seeds")
_OTHERS = (0.1, 10.0)  # times the rate, and times the norm at this rate


def main() -> None:
    """Print both tables."""
    args = parse()
    warnings.simplefilter("ignore")
    private, public = parts(args)
    base = DPSGDClassifier(
        model=args.model,
        classes=range(10),
        epsilon=args.epsilon,
        epochs=args.epochs,
        expected_batch_size=args.batch,
        optimizer="heavy_ball",
        accounting="rdp",  # at once, for a little more noise
    )
    found = clipping_recipe(
        base,
        *public,
        n_samples=args.records,
        clip_norms=args.clip_norms,
        path=args.kept,
        progress=print,
    )
    rows = [
        [
            trial.step,
            f"{trial.clip_norm:.4g}",
            f"{trial.learning_rate:.4g}",
            f"{trial.clip_norm * trial.learning_rate:.4g}",
            f"{trial.noise_multiplier:.3g}",
            f"{100 * trial.accuracy:.2f}",
        ]
        for trial in found.trials
    ]
    header = ["step", "clip norm", "rate", "rate x norm", "noise", "%"]
    print(markdown_table(header, rows, "recipe"), flush=True)
    chosen = found.chosen.clip_norm, found.chosen.learning_rate
    settings = {"as chosen": chosen, "defaults": None}
    for factor in _OTHERS:
        settings[f"rate x {factor:g}"] = chosen[0], chosen[1] * factor
        settings[f"clip norm x {factor:g}"] = chosen[0] * factor, chosen[1]
    scores: dict[str, Any] = {}
    rows = []
    for name, setting in settings.items():
        own = fit_of(base, setting)
        scores[name] = [
            float(
                own.set_params(random_state=seed).fit(*private[:2]).score(*private[2:])
            )
            for seed in range(args.seeds)
        ]
        rate = "default" if setting is None else f"{setting[1]:.4g}"
        rows.append([name, f"{own.clip_norm:.4g}", rate, percent(scores[name])])
        print(rows[-1], flush=True)
    header = ["private fit", "clip norm", "rate", "%"]
    print("\n" + markdown_table(header, rows, "private"))
    if args.out:
        content = {
            "settings": {name: getattr(args, name) for name in SETTINGS},
            "close": found.close,
            "accuracy": scores,
        }
        write_json(args.out, content)
    keep_tables(args.out)


def fit_of(base: DPSGDClassifier, setting: tuple[float, float] | None) -> Any:
    """Return the private fit with a clip norm and a rate, or with the defaults."""
    own = DPSGDClassifier(**base.get_params())
    if setting is None:
        return own.set_params(optimizer=None)
    return own.set_params(clip_norm=setting[0], learning_rate=setting[1])


def parse() -> argparse.Namespace:
    """Return the arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("images", type=Path)
    parser.add_argument("--model", default="sample_convnet")
    parser.add_argument("--records", type=int, default=5000, help="private images")
    parser.add_argument("--public", type=int, default=2500, help="public images")
    parser.add_argument("--size", type=int, default=32, help="side of the images")
    parser.add_argument("--epsilon", type=float, default=8.0)
    parser.add_argument("--epochs", type=float, default=20.0)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--clip-norms", nargs="+", type=float, default=CLIP_NORMS)
    parser.add_argument("--seeds", type=int, default=3, help="private fits of each")
    parser.add_argument("--kept", type=Path, help="what the recipe found, to go on")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def parts(args: argparse.Namespace) -> tuple[Any, Any]:
    """Return private and public images, each with its own for a test."""
    X, y, X_test, y_test = read_images(
        args.images, args.size, args.records + args.public
    )
    place = np.concatenate([np.arange(n) for n in np.bincount(y)])
    own = place < args.records // len(np.bincount(y))
    even = np.arange(len(y_test)) % 2 == 0
    private = X[own], y[own], X_test[even], y_test[even]
    return private, (X[~own], y[~own], X_test[~even], y_test[~even])


if __name__ == "__main__":
    main()
