"""Is this code as fast as another commit of it, side by side?

Runs the same lines in fresh processes, in turn with the package of this checkout and
with that of another, and prints the medians of both and of the ratios pair by pair,
which hold where the speed of the machine drifts:

    git worktree add ../before 3f0aa37a^
    python benchmarks/beside.py ../before --out beside.json

That commit is the last one before the package was divided into its present rooms.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from _processes import REPOSITORY, run_fresh
from _results import keep_tables, markdown_table, write_json

IMPORTS = ("import privfeat", "from privfeat import DPFC")
FITS = ("DPFC", "DPLeastSquares", "DPNewton", "DPAdamLinear")
FIT_SIZE = (20_000, 256, 10)  # records, features, classes
PREDICTED = 50_000
IMAGES = (1_000, 16, 10)  # records, pixels a side, classes

TIMED = """
import json, time, warnings
warnings.simplefilter("ignore")
times = []
def timed(run, *arguments):
    start = time.perf_counter()
    result = run(*arguments)
    times.append(time.perf_counter() - start)
    return result
"""
IMPORTED = """
timed(exec, {line!r}, {{}})
"""
FITTED = """
import numpy as np
import privfeat
rng = np.random.default_rng(0)
n, d, m = {size}
X, y = rng.normal(size=(n, d)), rng.integers(m, size=n)
for _ in range(2):
    model = getattr(privfeat, {name!r})(epsilon=1.0, delta=1e-5, classes=range(m))
    timed(model.fit, X, y)
rows = np.tile(X, (-(-{predicted} // n), 1))[:{predicted}]
model.predict(rows)
timed(model.predict, rows)
"""
TRAINED = """
import numpy as np
import privfeat
rng = np.random.default_rng(0)
n, pixels, m = {size}
X, y = rng.normal(size=(n, pixels, pixels, 3)), rng.integers(m, size=n)
for epochs in (1, 5):
    model = privfeat.DPSGDClassifier(
        model="simpleVGG-16(1)-32", epsilon=8.0, delta=1e-5, classes=range(m),
        epochs=epochs, expected_batch_size=200, clip_norm=1.0, learning_rate=0.01,
    )
    timed(model.fit, X.astype("float32"), y)
"""
PRINTED = """
print(json.dumps({"times": times}))
"""


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("other", type=Path, help="another checkout of the repository")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    found: dict[str, list[tuple[float, float]]] = {}
    for _ in range(args.pairs):
        for script, names in scripts():
            both = [times(script, root) for root in (REPOSITORY, args.other)]
            for name, *pair in zip(names, *both, strict=True):
                found.setdefault(name, []).append((pair[0], pair[1]))
    rows = [
        [
            name,
            *(f"{median(one):.3g}" for one in zip(*pairs, strict=True)),
            f"{median(here / there for here, there in pairs):.2f}",
        ]
        for name, pairs in found.items()
    ]
    print(markdown_table(["seconds", "here", "other", "here / other"], rows, "beside"))
    if args.out:
        write_json(args.out, {"pairs": found})
    keep_tables(args.out)


def scripts() -> Iterator[tuple[str, list[str]]]:
    """Yield each script, and the names of the times that it prints."""
    for line in IMPORTS:
        yield IMPORTED.format(line=line), [line]
    for name in FITS:
        given = {"name": name, "size": FIT_SIZE, "predicted": PREDICTED}
        names = [f"{name}, {fit} fit" for fit in ("first", "second")]
        yield FITTED.format(**given), [*names, f"{name}, predict"]
    names = [f"DPSGDClassifier, {epochs}" for epochs in ("1 epoch", "5 epochs")]
    yield TRAINED.format(size=IMAGES), names


def times(script: str, root: Path) -> list[float]:
    """Return what a fresh process measures with the package of a checkout."""
    code = TIMED + script + PRINTED
    environment = {"PYTHONPATH": str(root.resolve()), "PYTHONDONTWRITEBYTECODE": ""}
    found: dict[str, Any] = run_fresh("-c", [code], environment=environment)
    return [float(one) for one in found["times"]]


if __name__ == "__main__":
    main()
