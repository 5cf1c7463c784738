"""How many groups of a pretrained network should stay? With batch and epochs.

    python benchmarks/frozen.py imagenet/ --weights public-model --out frozen.json
    make gpu IMAGES=imagenet/ WEIGHTS=public-model    # the same, after its own parts

Tables 6, 7, 8 and 11 of Kurakin et al. 2022: fits from scratch, and fits that begin at
public weights with no group, one to four groups, or all but the logits frozen; at one
epsilon, for every batch and number of epochs. Their recipe: Nesterov momentum 0.9, a
cosine after a warm-up of one epoch, weight decay 1e-4, clip norm 1. The rate is that of
a batch of 65,536, and in proportion for others; of several the one that is best on the
test images is shown, as in the paper. Defaults are the paper's, but for days of an
accelerator: give it fewer. What the file of ``--out`` holds already is not run again.

Images are ``train/<class>/*``, ``test/`` likewise, in a folder or an archive.
``--weights`` is the folder of a model of this library that was trained on public
images, or a ``.safetensors`` file of timm.
"""

import argparse
import math
import warnings
from functools import partial
from pathlib import Path
from typing import Any

from _results import Cells, keep_tables, markdown_table, settings_of
from dpsgd_accuracy import Data, read_images

import privfeat

SCRATCH = "from scratch"
FROZEN = (SCRATCH, "0", "1", "2", "3", "4", "all_but_head")
_LARGEST = 65_536  # the batch that a rate is for


def main() -> None:
    """Print a table for each choice of what is frozen."""
    args = parse()
    warnings.simplefilter("ignore")
    data = read_images(args.images, args.size, args.records)
    kept = Cells(args.out, settings_of(args))
    for frozen in args.frozen:
        rows = []
        for epochs in args.epochs:
            rows.append([f"{epochs:g}"])
            for batch in args.batches:
                fits = partial(best, data, args, frozen, epochs, batch)
                cell = kept.get(f"{frozen}, {epochs:g} epochs, batch {batch}", fits)
                rows[-1].append(f"{100 * max(cell['accuracies'].values()):.1f}")
        header = [f"{frozen}: epochs, by batch", *map(str, args.batches)]
        print(markdown_table(header, rows, f"frozen: {frozen}") + "\n", flush=True)
    keep_tables(args.out)


def parse() -> argparse.Namespace:
    """Return the arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("images", type=Path)
    parser.add_argument("--weights", type=Path, help="public; not for scratch alone")
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--size", type=int, default=224, help="side of the images")
    parser.add_argument("--records", type=int, help="this many of each split, evenly")
    parser.add_argument("--frozen", nargs="+", choices=FROZEN, default=FROZEN)
    parser.add_argument("--epochs", nargs="+", type=float, default=[10, 40, 70])
    parser.add_argument(
        "--batches", nargs="+", type=int, default=[4096, 16_384, _LARGEST]
    )
    parser.add_argument("--rates", nargs="+", type=float, default=[1.92, 7.68])
    parser.add_argument("--epsilon", type=float, default=10.0)
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.weights is None and {*args.frozen} != {SCRATCH}:
        parser.error(f"--weights is missing, for all but --frozen {SCRATCH!r}")
    return args


def best(
    data: Data, args: argparse.Namespace, frozen: str, epochs: float, batch: int
) -> dict[str, Any]:
    """Return the accuracy at each rate, and the noise of one gradient."""
    X, y, X_test, y_test = data
    accuracies: dict[str, float] = {}
    noise = math.nan
    for rate in args.rates:
        clf = privfeat.DPSGDClassifier(
            classes=range(int(y.max()) + 1),
            random_state=0,
            learning_rate=rate * batch / _LARGEST,
            **settings(args, frozen, epochs, batch, len(y)),
        ).fit(X, y)
        accuracies[f"{rate:g}"] = float(clf.score(X_test, y_test))
        (release,) = clf.privacy_.releases
        noise = release.noise_stddev / release.l2_sensitivity
    return {"accuracies": accuracies, "noise": noise}


def settings(
    args: argparse.Namespace, frozen: str, epochs: float, batch: int, n_records: int
) -> dict[str, Any]:
    """Return the parameters of a fit but for its rate and classes."""
    begun = {}
    if frozen != SCRATCH:
        known = int(frozen) if frozen.isdigit() else frozen
        begun = {"weights": weights(args.weights), "frozen": known or ()}
    return begun | {
        "model": args.model,
        "epsilon": args.epsilon,
        "delta": args.delta,
        "epochs": epochs,
        "expected_batch_size": batch,
        "optimizer": "nesterov",
        "schedule": "cosine",
        "warmup_steps": math.ceil(n_records / batch),
        "weight_decay": 1e-4,
        "microbatch_size": "largest",
    }


def weights(path: Path) -> Any:
    """Return what ``weights`` takes: of a folder the parameters of its model."""
    return privfeat.load(path).parameters_ if path.is_dir() else path


if __name__ == "__main__":
    main()
