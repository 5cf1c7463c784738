"""How long until the first result, and for one prediction?

Import times in fresh processes, beside that of ``sklearn.base``; what the first fit of
a process takes more than a later one, without JAX's cache of compiled code, with an
empty one and with that of the process before (the folder that the environment variable
``PRIVFEAT_COMPILATION_CACHE`` names, or ``off``); predictions of one row; and what the
processor does for a command until its first output, on small input:

    python benchmarks/startup.py --out startup.json

All are medians, of times on the wall and, in parentheses, of the processor. With
``--commands`` only those of the commands.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _processes import run_fresh
from _results import keep_tables, markdown_table, write_json

ESTIMATORS = (
    "DPFC",
    "DPLeastSquares",
    "DPNewton",
    "DPAdamLinear",
    "DPLeastSquaresRegressor",
)
IMPORTS = (
    "import sklearn.base",
    "import privfeat",
    "import jax.numpy",
    "from privfeat import DPFC",
)
BAR_MS = 1.0
# Of a folder that `prepare_commands` fills.
COMMANDS = {
    "predict": "predict --model {0}/model --features {0}/x.h5 --out {0}/p.csv",
    "statement": "statement {0}/model",
    "budget show": "budget show {0}/x.ledger",
    "plan": "plan --n 50000 --d 768 --classes 10 --epsilon 1",
    "report": "report {0}/model --out {0}/report.html",
}
BAR_S = 1.0
Time = tuple[float, float]  # seconds on the wall, of the processor


def main() -> None:
    """Print four tables, or in a fresh process the numbers of one cell."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5, help="fresh processes")
    parser.add_argument("--calls", type=int, default=200, help="predictions")
    parser.add_argument(
        "--size", nargs=3, type=int, default=[2000, 768, 100], metavar=("n", "d", "m")
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("--commands", action="store_true", help="nothing else")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        kind, subject = args.child
        print(json.dumps(CHILDREN[kind](subject, args)))
        return
    commands = command_times(args)
    rows = [
        [f"`{name}`", shown(found, 1, "s"), "yes" if found[1] < BAR_S else "no"]
        for name, found in commands.items()
    ]
    header = ["first output of", "time", f"processor below {BAR_S:g} s"]
    print(f"{markdown_table(header, rows, 'commands')}\n", flush=True)
    if args.commands:
        if args.out:
            write_json(args.out, {"commands": commands})
        keep_tables(args.out)
        return
    imports = {statement: import_times(statement, args) for statement in IMPORTS}
    base = imports[IMPORTS[0]]
    rows = [
        [f"`{statement}`", shown(found, 1, "s"), f"{found[0] - base[0]:+.3f} s"]
        for statement, found in imports.items()
    ]
    print(markdown_table(["import", "time", "above sklearn.base"], rows, "import"))

    fits = {name: fit_times(name, args) for name in ESTIMATORS}
    rows = [
        [name, *(shown(found, 1, "s") for found in times.values())]
        for name, times in fits.items()
    ]
    header = ["first fit less a later one", *next(iter(fits.values()))]
    print(f"\n{markdown_table(header, rows, 'first fit')}", flush=True)

    predictions = {name: child("predict", name, args)["predict"] for name in ESTIMATORS}
    rows = [
        [name, shown(found, 1e3, "ms"), "yes" if found[0] * 1e3 < BAR_MS else "no"]
        for name, found in predictions.items()
    ]
    header = ["prediction of one row", "time", f"below {BAR_MS:g} ms"]
    print(f"\n{markdown_table(header, rows, 'prediction')}")
    if args.out:
        content = {"imports": imports, "first_fit": fits, "predict": predictions}
        content |= {"commands": commands}
        write_json(args.out, {"size": args.size} | content)
    keep_tables(args.out)


def child(
    kind: str, subject: str, args: argparse.Namespace, **environment: str
) -> dict[str, Any]:
    """Return what a fresh process measures."""
    arguments = ("--child", kind, subject, "--calls", args.calls, "--size", *args.size)
    return run_fresh(__file__, arguments, environment=environment)


def command_times(args: argparse.Namespace) -> dict[str, Time]:
    """Return the median times of commands, after one run that fills the disk cache."""
    with tempfile.TemporaryDirectory() as folder:
        prepare_commands(folder)
        lines = {name: line.format(folder).split() for name, line in COMMANDS.items()}
        return {
            name: middle([first_output(line) for _ in range(1 + args.repeats)][1:])
            for name, line in lines.items()
        }


def prepare_commands(folder: str) -> None:
    """Make a small feature file, a model of it and a ledger with one fit."""
    import privfeat
    from privfeat.data import write_features

    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    X = np.random.default_rng(0).standard_normal((200, 16), dtype=np.float32)
    y = np.arange(200) % 4
    write_features(f"{folder}/x.h5", {"test": (X, y)})
    ledger = privfeat.PrivacyLedger(
        f"{folder}/x.ledger", dataset="x", epsilon=2.0, delta=1e-5
    )
    model = privfeat.DPLeastSquares(classes=range(4), ledger=ledger).fit(X, y)
    privfeat.save(model, f"{folder}/model")


def first_output(command: list[str]) -> Time:
    """Return how long a command runs until the first byte of its output."""
    code = "from privfeat.cli import main; import sys; sys.exit(main())"
    start = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-c", code, *command], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        wall = time.perf_counter() - start
        stat = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8")
        process.stdout.read()
    # fields 14 and 15 of proc(5): time of the processor in clock ticks
    ticks = sum(map(int, stat.rpartition(")")[2].split()[11:13]))
    return wall, ticks / os.sysconf("SC_CLK_TCK")


def import_times(statement: str, args: argparse.Namespace) -> Time:
    """Return the median time of an import, after one that fills the disk cache."""
    code = (
        "import json, time; w, c = time.perf_counter(), time.process_time(); "
        f"{statement}; w, c = time.perf_counter() - w, time.process_time() - c; "
        "print(json.dumps({'import': [w, c]}))"
    )
    times = [run_fresh("-c", [code])["import"] for _ in range(1 + args.repeats)]
    return middle(times[1:])


def fit_times(name: str, args: argparse.Namespace) -> dict[str, Time]:
    """Return what the first fit takes more, for each state of the cache."""
    times: dict[str, list[Time]] = {}
    for _ in range(args.repeats):
        with tempfile.TemporaryDirectory() as folder:
            caches = {"no cache": "off", "empty cache": folder}
            for state, cache in (*caches.items(), ("second process", folder)):
                found = child("fit", name, args, PRIVFEAT_COMPILATION_CACHE=cache)
                times.setdefault(state, []).append(found["excess"])
    return {state: middle(found) for state, found in times.items()}


def child_fit(name: str, args: argparse.Namespace) -> dict[str, Time]:
    """Time the first fit of this process, less a later one."""
    estimator, data = prepared(name, args)
    first = timed(lambda: estimator.fit(*data))
    later = middle([timed(lambda: estimator.fit(*data)) for _ in range(3)])
    return {"excess": (first[0] - later[0], first[1] - later[1])}


def child_predict(name: str, args: argparse.Namespace) -> dict[str, Time]:
    """Time predictions of one row, after the first."""
    estimator, data = prepared(name, args)
    estimator.fit(*data)
    row = data[0][:1]
    times = [timed(lambda: estimator.predict(row)) for _ in range(1 + args.calls)]
    return {"predict": middle(times[1:])}


CHILDREN = {"fit": child_fit, "predict": child_predict}


def prepared(name: str, args: argparse.Namespace) -> tuple[Any, tuple[Any, Any]]:
    """Return an estimator and data for it."""
    import privfeat

    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    n, d, m = args.size
    X = np.random.default_rng(0).standard_normal((n, d), dtype=np.float32)
    if name == "DPLeastSquaresRegressor":
        return privfeat.DPLeastSquaresRegressor(target_bounds=(-1, 1)), (X, X[:, 0])
    return getattr(privfeat, name)(classes=range(m)), (X, np.arange(n) % m)


def timed(call: Callable[[], Any]) -> Time:
    """Return how long a call takes."""
    wall, processor = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - processor


def middle(times: list[Any]) -> Time:
    """Return the medians."""
    wall, processor = zip(*times, strict=True)
    return statistics.median(wall), statistics.median(processor)


def shown(found: Time, factor: float, unit: str) -> str:
    """Return both times."""
    return f"{found[0] * factor:.3f} {unit} ({found[1] * factor:.3f})"


if __name__ == "__main__":
    main()
