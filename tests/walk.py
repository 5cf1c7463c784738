"""The way that a fit takes through the files: ``python tests/walk.py``.

A second fit is followed, so that nothing is imported or compiled any more. A move is a
call, or the return from one, after which another file of privfeat is at work; checks of
single parameters (``_checks.py``) are left out. Code between them that is not ours, as
of a decorator, is passed through.
"""

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
_LEFT_OUT = {"privfeat/_checks.py"}


@dataclass
class Walk:
    """What one call visits.

    Attributes
    ----------
    stops : list of str
        The file at work after each move, ``privfeat/linear/model.py`` say.
    functions : Counter
        How often each function was called, by file and name.
    calls : list of (int, str, str)
        Every call: how deep it is, its file and its function.
    """

    stops: list[str] = field(default_factory=list)
    functions: Counter[tuple[str, str]] = field(default_factory=Counter)
    calls: list[tuple[int, str, str]] = field(default_factory=list)

    @property
    def files(self) -> set[str]:
        """The files that were visited."""
        return set(self.stops)

    @property
    def n_moves(self) -> int:
        """The number of times that another file was at work."""
        return len(self.stops) - 1


def walk(call: Callable[[], Any]) -> Walk:
    """Return the way of a call through the files of privfeat."""
    found, inside = Walk(), []

    def at(file: str) -> None:
        if not found.stops or found.stops[-1] != file:
            found.stops.append(file)

    def watch(frame: FrameType, event: str, _: Any) -> None:
        file = _ours(frame)
        if file is None or event not in ("call", "return"):
            return
        if event == "call":
            inside.append(file)
            found.functions[file, frame.f_code.co_name] += 1
            found.calls.append((len(inside), file, frame.f_code.co_qualname))
            at(file)
        else:
            inside.pop()
            if inside:
                at(inside[-1])

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


def _ours(frame: FrameType) -> str | None:
    path = frame.f_code.co_filename
    if not path.startswith(str(ROOT)):
        return None
    file = path.removeprefix(f"{ROOT}/")
    return file if file.startswith("privfeat/") and file not in _LEFT_OUT else None


def fits() -> dict[str, Callable[[], Any]]:
    """Return the calls that are followed, by what they are called."""
    from privfeat import DPFC, DPSGDClassifier

    draw = np.random.default_rng(0)
    X, y = draw.normal(size=(40, 6)), np.arange(40) % 3
    linear = DPFC(epsilon=1.0, classes=range(3), n_iter=2)
    network = DPSGDClassifier(
        model="mlp",
        noise_multiplier=1.0,
        classes=range(3),
        n_iter=2,
        expected_batch_size=8,
    )
    return {
        "DPFC.fit, 2 steps": lambda: linear.fit(X, y),
        "DPSGDClassifier.fit, mlp, 2 steps": lambda: network.fit(X, y),
    }


def main() -> None:
    """Print how many files, functions and moves each fit takes, and the way itself."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--way", action="store_true", help="print every stop")
    parser.add_argument("--calls", action="store_true", help="print every call")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for name, call in fits().items():
        call()
        found = walk(call)
        print(
            f"{name}: {len(found.files)} files, {len(found.functions)} functions, "
            f"{found.n_moves} moves"
        )
        for file, count in Counter(found.stops).most_common():
            print(f"  {count:4d} {file}")
        if arguments.way:
            print("  " + " > ".join(found.stops))
        if arguments.calls:
            for depth, file, function in found.calls:
                print("  " * depth + f"{file}: {function}")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
