"""The way of a fit and of an extraction through the files: ``python tests/walk.py``.

A second call is followed, so that nothing is imported or compiled any more. A move is a
call, or the return from one, after which another file of privfeat is at work; checks of
single parameters (``_checks.py``) are left out. Code between them that is not ours, as
of a decorator, is passed through.
"""

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
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
        file = _ours(frame.f_code.co_filename)
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


@cache
def _ours(code: str) -> str | None:
    """Return the path of a file of privfeat from the root; None for other files."""
    path = Path(code).resolve()
    if not path.is_relative_to(ROOT):
        return None
    file = path.relative_to(ROOT).as_posix()
    ours = file.startswith(("privfeat/", "extract/"))
    return file if ours and file not in _LEFT_OUT else None


def calls(folder: Path) -> dict[str, Callable[[], Any]]:
    """Return the calls that are followed, by name; ``folder`` is for their files."""
    from privfeat import DPFC, DPSGDClassifier
    from privfeat_extract.cli import main as extract

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
    options = ["--data", _images(folder / "images"), "--out", folder / "out.h5"]
    options += ["--model", "scattering", "--overwrite", "--quiet"]
    return {
        "DPFC.fit, 2 steps": lambda: linear.fit(X, y),
        "DPSGDClassifier.fit, mlp, 2 steps": lambda: network.fit(X, y),
        "privfeat-extract, scattering, 8 images": lambda: extract(map(str, options)),
    }


def _images(root: Path) -> Path:
    """Write 8 grey images of two classes in two splits, and return their folder."""
    from PIL import Image

    for number in range(8):
        split, name = ("train", "test")[number % 2], "ab"[number // 2 % 2]
        folder = root / split / name
        folder.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(number).integers(0, 256, (16, 16), np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    return root


def main() -> None:
    """Print how many files, functions and moves each call takes, and the way itself."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--way", action="store_true", help="print every stop")
    parser.add_argument("--calls", action="store_true", help="print every call")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    with TemporaryDirectory() as folder:
        for name, call in calls(Path(folder)).items():
            with redirect_stdout(StringIO()):  # an extraction prints what it wrote
                call()
                found = walk(call)
            _print(name, found, way=arguments.way, calls=arguments.calls)


def _print(name: str, found: Walk, *, way: bool, calls: bool) -> None:
    print(
        f"{name}: {len(found.files)} files, {len(found.functions)} functions, "
        f"{found.n_moves} moves"
    )
    for file, count in Counter(found.stops).most_common():
        print(f"  {count:4d} {file}")
    if way:
        print("  " + " > ".join(found.stops))
    if calls:
        for depth, file, function in found.calls:
            print("  " * depth + f"{file}: {function}")


def _find_packages() -> None:
    """Make this folder's packages those that are imported, wherever others are."""
    sys.path.insert(0, str(ROOT))
    # the folder extract/ is the package privfeat_extract, see pyproject.toml
    name = "privfeat_extract"
    spec = spec_from_file_location(name, ROOT / "extract" / "__init__.py")
    sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])


if __name__ == "__main__":
    _find_packages()
    main()
