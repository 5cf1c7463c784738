"""Draw the picture of the README from a measured table.

    python benchmarks/picture.py

Accuracy against epsilon of `DPFC` with its defaults, of the papers' methods and of
DP-SGD, both tuned on the test set, and without privacy: the table of CIFAR-10 in
``results/accuracy_cifar10_128.json``, which is a section of ``RESULTS.md``.
"""

import argparse
import json
from pathlib import Path

import matplotlib as mpl
from _results import RESULTS
from accuracy import TUNED
from matplotlib.figure import Figure

OUT = Path(__file__).resolve().parent.parent / "docs" / "accuracy.png"
# Row of the table -> label, colour and marker: told apart without colours as well.
LINES = {
    "DPFC": ("DPFC, defaults", "#0b5fa5", "o"),
    "DP-SGD, tuned": ("DP-SGD (opacus), tuned on the test set", "#b5541c", "s"),
    TUNED: ("the papers' best, tuned on the test set", "#6b6b6b", "^"),
}


def main() -> None:
    """Draw, and say where."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT)
    out = parser.parse_args().out
    path = RESULTS / "accuracy_cifar10_128.json"
    result = json.loads(path.read_text(encoding="utf-8"))
    table = result["tables"]["cifar10_128"]
    epsilons = [float(epsilon) for epsilon in table["header"][1:]]
    rows = {
        row[0]: [float(cell.split()[0]) for cell in row[1:]] for row in table["rows"]
    }
    with mpl.rc_context({"font.size": 10, "axes.spines.top": False}):
        figure = Figure(figsize=(7.2, 3.4), layout="constrained")
        axes = figure.add_subplot()
        axes.spines["right"].set_visible(False)
        for name, (label, color, marker) in LINES.items():
            axes.plot(epsilons, rows[name], marker=marker, color=color, label=label)
        axes.axhline(
            rows["non-private"][0], color="black", ls=":", lw=1, label="without privacy"
        )
        axes.set_xscale("log")
        axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
        axes.minorticks_off()
        axes.set_xlabel("epsilon (delta 1e-5)")
        axes.set_ylabel("test accuracy, %")
        axes.legend(frameon=False, loc="lower right")
        # without the date, so that the same table gives the same bytes
        figure.savefig(out, dpi=110, metadata={"Software": None})
    print(out)


if __name__ == "__main__":
    main()
