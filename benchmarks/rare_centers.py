"""Does `DPAdamLinear` know how rare a class is, where no mean is released?

The drawn rows of `rare.py`, one positive in a hundred, for each ``center``: not
released (False, as sparse rows take it), the mean of 500 public rows, and released
(True). Beside the default start of the intercepts stands ``intercept_init=0``.

    python benchmarks/rare_centers.py --out rare_centers.json
"""

import argparse
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from _results import Cells, keep_tables, markdown_table, settings_of
from rare import MEASURES, N_TEST, draw, measure, repeated, unit, with_error

import privfeat

STARTS = {"default": None, "0": 0.0}


def main() -> None:
    """Print one row for each center, budget and start."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--test", type=int, default=N_TEST)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.5, 1, 8])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    kept = Cells(args.out, settings_of(args, "epsilons"))
    train, test = draw(args.records, seed=1), draw(args.test, seed=2)
    public = unit(draw(500, seed=3)[0]).mean(axis=0)
    rows = []
    for name, center in {"False": False, "public": public, "True": True}.items():
        for epsilon in args.epsilons:
            for start, init in STARTS.items():
                clf = privfeat.DPAdamLinear(
                    epsilon=epsilon, classes=[0, 1], center=center, intercept_init=init
                )
                found = kept.get(
                    f"center {name}, epsilon {epsilon:g}, start {start}",
                    partial(repeated, clf, train, test, measure, args.repeats),
                )
                columns = (with_error(column, 3) for column in np.transpose(found))
                rows.append([name, f"{epsilon:g}", start, *columns])
    head = ["center", "epsilon", "intercepts", *MEASURES]
    print(markdown_table(head, rows, "rare centers"))
    kept.save()
    keep_tables(args.out)


if __name__ == "__main__":
    main()
