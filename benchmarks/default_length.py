"""Are the default epochs and steps of networks near the best ones?

    python benchmarks/default_length.py digits --out default_length.json

For the images that `default_rate.py` reads: test accuracy of `DPSGDClassifier` at its
default rate, with its default epochs in a quarter and four times its 200 steps; and in
200 steps with half and twice the epochs. The batch makes one of the other.
"""

import argparse
import warnings
from pathlib import Path
from typing import Any

from _results import Cells, keep_tables, markdown_table, settings_of
from default_rate import read
from dpsgd_accuracy import percent

from privfeat import DPSGDClassifier
from privfeat.networks.training.defaults import STEPS, default_epochs

# what epochs and steps are multiplied by
TRIED = ((1.0, 0.25), (1.0, 1.0), (1.0, 4.0), (0.5, 1.0), (2.0, 1.0))
DELTA = 1e-5


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("images", help="'digits', or a folder or archive of images")
    parser.add_argument("--model", default="simpleVGG-16(2)-32")
    parser.add_argument("--records", type=int, default=2000, help="of images")
    parser.add_argument("--size", type=int, default=16, help="side of images")
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1, 8])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    cells = Cells(args.out, settings_of(args))
    data = read(args)
    rows = []
    for epsilon in args.epsilons:
        for of_epochs, of_steps in TRIED:
            epochs = of_epochs * default_epochs(epsilon, DELTA)
            steps = round(of_steps * STEPS)
            key = f"epsilon={epsilon:g} epochs={epochs:.4g} steps={steps}"
            fit = {"epsilon": epsilon, "epochs": epochs, "n_iter": steps}
            cell = cells.get(key, lambda fit=fit: accuracy(data, args, fit))
            name = "default" if (of_epochs, of_steps) == (1.0, 1.0) else ""
            shown = [f"{epochs:.1f}", str(steps), f"{cell['noise']:.2f}"]
            rows.append([f"{epsilon:g}", *shown, percent(cell["scores"]), name])
            print(" | ".join(rows[-1]), flush=True)
    header = ["epsilon", "epochs", "steps", "noise multiplier", "%", ""]
    print("\n" + markdown_table(header, rows, "lengths"))
    keep_tables(args.out)


def accuracy(data: Any, args: Any, fit: dict[str, Any]) -> dict[str, Any]:
    """Return the accuracy of each seed, and the noise."""
    X, y, X_test, y_test = data
    scores = []
    for seed in range(args.seeds):
        clf = DPSGDClassifier(
            model=args.model,
            delta=DELTA,
            classes=range(10),
            accounting="rdp",
            random_state=seed,
            **fit,
        ).fit(X, y)
        scores.append(float(clf.score(X_test, y_test)))
    (release,) = clf.privacy_.releases
    return {
        "scores": scores,
        "noise": float(release.noise_stddev / release.l2_sensitivity),
    }


if __name__ == "__main__":
    main()
