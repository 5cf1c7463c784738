"""The architecture, enforced: which folder may import what.

Every file of ``privfeat/`` and ``extract/`` is parsed, not run. A new folder fails
until it has a row in ``tests/rules.py``, so the decision is made in a review.
"""

import ast
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

import privfeat
from tests.audited import ROOT
from tests.rules import ALSO_ALLOWED, RESTRICTED, RULES, Rule


@dataclass(frozen=True)
class Import:
    """One imported name, with what it takes to judge it."""

    line: int
    module: str
    names: tuple[str, ...]
    at_import_time: bool


def find_rule(path: str) -> Rule | None:
    """Return the rule of the file or of the innermost folder that has one."""
    while path:
        if path in RULES:
            return RULES[path]
        path = path.rpartition("/")[0]
    return None


def read_imports(path: str, source: str) -> Iterator[Import]:
    """Yield each import of a file, those by ``importlib.import_module`` included."""
    tree = ast.parse(source)
    deferred = {
        id(child)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        or (isinstance(node, ast.If) and _is_type_checking(node.test))
        for child in ast.walk(node)
        if child is not node
    }
    for node in ast.walk(tree):
        now = id(node) not in deferred
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(node.lineno, alias.name, (), now)
        elif isinstance(node, ast.ImportFrom):
            module = _absolute(path, node.level, node.module)
            names = tuple(alias.name for alias in node.names)
            yield Import(node.lineno, module, names, now)
        elif isinstance(node, ast.Call) and node.args:
            name = ast.unparse(node.func).rpartition(".")[2]
            target = node.args[0]
            if (
                name in {"import_module", "__import__"}
                and isinstance(target, ast.Constant)
                and isinstance(target.value, str)
                and not target.value.startswith(".")
            ):
                yield Import(node.lineno, target.value, (), now)


def _is_type_checking(test: ast.expr) -> bool:
    return ast.unparse(test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


def _absolute(path: str, level: int, module: str | None) -> str:
    if not level:
        return module or ""
    dotted = path.removesuffix(".py").replace("/", ".")
    if dotted.split(".")[0] == "extract":
        dotted = "privfeat_" + dotted
    base = dotted.split(".")[:-level]
    return ".".join([*base, *([module] if module else [])])


def _is_below(module: str, allowed: frozenset[str]) -> bool:
    return any(module == name or module.startswith(name + ".") for name in allowed)


def check_file(path: str, source: str) -> list[str]:
    """Return one line for every import of the file that is not allowed."""
    applied = find_rule(path)
    if applied is None:
        return [f"{path}: no rule. Add a row to RULES in tests/rules.py."]
    problems = []
    for found in read_imports(path, source):
        root = found.module.split(".")[0]
        where = f"{path}:{found.line}"
        if root in {"privfeat", "privfeat_extract"}:
            # `from privfeat.core.noise import release` may name a module or an object
            whole = {f"{found.module}.{name}" for name in found.names}
            below = _is_below(found.module, applied.ours) or (
                whole and all(_is_below(name, applied.ours) for name in whole)
            )
            if not below:
                problems.append(f"{where}: {found.module} is not for this folder")
            continue
        if root in sys.stdlib_module_names:
            if path not in RESTRICTED.get(root, {path}):
                problems.append(f"{where}: {root} is restricted")
            continue
        if root not in applied.third_party | ALSO_ALLOWED.get(path, set()):
            problems.append(f"{where}: {root} is not for this folder")
        if root in applied.lazy and found.at_import_time:
            problems.append(f"{where}: import {root} inside a function")
        parts = [*found.module.split("."), *found.names]
        if any(part.startswith("_") for part in parts):
            problems.append(f"{where}: {found.module} is private to {root}")
    return problems


def all_files() -> list[Path]:
    return sorted([*ROOT.glob("privfeat/**/*.py"), *ROOT.glob("extract/**/*.py")])


def test_every_import_is_allowed():
    files = all_files()
    assert len(files) > 20
    problems = []
    for file in files:
        path = file.relative_to(ROOT).as_posix()
        problems += check_file(path, file.read_text(encoding="utf-8"))
    assert problems == []


def test_every_exception_is_still_needed():
    excepted = set(ALSO_ALLOWED).union(*RESTRICTED.values())
    assert excepted <= {file.relative_to(ROOT).as_posix() for file in all_files()}


@pytest.mark.parametrize(
    ("path", "source", "problem"),
    [
        ("privfeat/core/noise/draws.py", "import torch", "torch is not for"),
        ("privfeat/core/noise/draws.py", "import sklearn.utils", "sklearn is not for"),
        (
            "privfeat/core/noise/draws.py",
            "from privfeat import data",
            "privfeat is not",
        ),
        (
            "privfeat/core/noise/draws.py",
            "import dp_accounting",
            "dp_accounting is not",
        ),
        (
            "privfeat/core/noise/draws.py",
            "from ... import linear",
            "privfeat is not for",
        ),
        ("privfeat/core/noise/draws.py", "import random", "random is restricted"),
        ("privfeat/core/noise/draws.py", "import sqlite3", "sqlite3 is restricted"),
        (
            "privfeat/core/ledger/privacy_ledger.py",
            "import sqlalchemy",
            "sqlalchemy is not for",
        ),
        (
            "privfeat/core/bounds/grid.py",
            "from privfeat.core.sums import totals",
            "privfeat.core.sums is not for",
        ),
        ("privfeat/core/sums/a.py", "from jax._src import core", "private to jax"),
        ("privfeat/core/a.py", "from numpy import _core", "private to numpy"),
        (
            "privfeat/solvers/ridge.py",
            "from privfeat.core.sums.statistics import gram",
            "privfeat.core.sums.statistics is not for",
        ),
        (
            "privfeat/solvers/ridge.py",
            "from privfeat.core.noise import release, draws",
            "privfeat.core.noise is not for",
        ),
        ("privfeat/data/store.py", "import jax", "jax is not for"),
        ("privfeat/linear/base.py", "def f():\n    import h5py", "h5py is not for"),
        (
            "privfeat/linear/base.py",
            "import importlib\nimportlib.import_module('timm')",
            "base.py:2: timm is not for",
        ),
        ("privfeat/report/plots.py", "import matplotlib", "inside a function"),
        ("privfeat/persistence/loading.py", "import pickle", "pickle is restricted"),
        ("privfeat/new_folder/a.py", "import math", "no rule"),
        ("extract/cli.py", "from privfeat.core import noise", "privfeat.core is not"),
        ("extract/cli.py", "import jax", "jax is not for"),
    ],
)
def test_checker_reports_a_planted_violation(path, source, problem):
    problems = check_file(path, source)
    assert len(problems) == 1
    assert problem in problems[0]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("privfeat/core/noise/draws.py", "import jax.numpy as jnp\nimport math"),
        ("privfeat/core/accounting/pld.py", "from dp_accounting import pld"),
        ("privfeat/core/noise/draws.py", "from privfeat._checks import check_real"),
        (
            "privfeat/solvers/ridge.py",
            "from privfeat.core.noise.release import Release",
        ),
        ("privfeat/solvers/ridge.py", "from privfeat.core.noise import release"),
        ("privfeat/report/plots.py", "def f():\n    import matplotlib.pyplot"),
        ("extract/cli.py", "from .images import read\nfrom . import images"),
        ("extract/cli.py", "def f():\n    import timm"),
    ],
)
def test_checker_accepts_what_the_table_allows(path, source):
    assert check_file(path, source) == []


def loaded_after(statement: str) -> set[str]:
    """Return the top-level modules that a fresh interpreter holds afterwards."""
    code = f"import sys; {statement}; print(*{{m.split('.')[0] for m in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_import_of_privfeat_is_light():
    heavy = {"torch", "timm", "jax", "h5py", "matplotlib", "sklearn", "scipy", "optax"}
    assert not loaded_after("import privfeat") & (heavy | {"privfeat_extract"})


def test_threads_import_parts_one_after_the_other(plant, monkeypatch):
    """Else one may find a module of scikit-learn that another has half imported."""
    at_once, most = [], []

    def importing(home):
        at_once.append(home)
        most.append(len(at_once))
        time.sleep(0.02)
        at_once.remove(home)
        return SimpleNamespace(A=home, B=home, C=home)

    plant("import of a part", importing)
    plant("modules of the names", {name: f"home of {name}" for name in "ABC"})
    for name in "ABC":
        monkeypatch.setitem(vars(privfeat), name, None)  # put back what is set below
        del vars(privfeat)[name]
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda name: getattr(privfeat, name), "ABC"))
    assert found == [f"home of {name}" for name in "ABC"]
    assert set(most) == {1}


def test_help_of_the_command_is_light():
    statement = "from privfeat.cli import build_parser; build_parser()"
    assert not loaded_after(statement) & {"jax", "sklearn", "h5py", "matplotlib"}


def test_extraction_without_weights_needs_no_torch():
    loaded = loaded_after("import privfeat_extract.cli")
    assert not loaded & {"torch", "torchvision", "timm", "jax"}


def test_feature_files_are_read_without_jax():
    assert not loaded_after("import privfeat.data") & {"jax", "torch", "sklearn"}
