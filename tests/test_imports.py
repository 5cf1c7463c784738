"""The architecture, enforced: which folder may import what.

Every file of ``privfeat/`` and ``extract/`` is parsed, not run. A new folder fails
until it has a row in ``RULES``, so the decision is made in a review.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.audited import stages

ROOT = Path(__file__).resolve().parent.parent
BASE = {"numpy", "scipy"}
SHARED = {
    "privfeat._checks",
    "privfeat._extras",
    "privfeat._messages",
    "privfeat._types",
    "privfeat._version",
    "privfeat._warnings",
    "privfeat.exceptions",
}


@dataclass(frozen=True)
class Rule:
    """What one folder, or one file directly in a package, may import."""

    third_party: frozenset[str]
    ours: frozenset[str]
    # third-party roots that must not be imported when the module is
    lazy: frozenset[str] = frozenset()


def rule(third_party=(), ours=(), lazy=()):
    return Rule(
        frozenset(BASE | {*third_party, *lazy}), frozenset(ours), frozenset(lazy)
    )


def core_rules():
    """A folder of the core imports those before it: the stages of the argument."""
    names = stages()
    return {
        f"privfeat/core/{stage}": rule(
            ["jax", "jaxtyping"],
            ours=SHARED | {f"privfeat.core.{name}" for name in names[: index + 1]},
        )
        for index, stage in enumerate(names)
    }


RULES = {
    "privfeat/__init__.py": rule(ours={"privfeat"}),
    "privfeat/_version.py": rule(),
    "privfeat/_checks.py": rule(ours=SHARED),
    "privfeat/_types.py": rule(["jaxtyping"], ours=SHARED),
    "privfeat/_compilation.py": rule(["jax"]),
    "privfeat/_encoding.py": rule(),
    "privfeat/_extras.py": rule(),
    "privfeat/_files.py": rule(),
    "privfeat/_model_checks.py": rule(ours={"privfeat"}),
    "privfeat/_model_files.py": rule(ours={"privfeat._files"}),
    "privfeat/_messages.py": rule(ours=SHARED, lazy=["sklearn"]),
    "privfeat/_notebook.py": rule(),
    "privfeat/_random.py": rule(),
    "privfeat/_warnings.py": rule(ours={"privfeat.exceptions"}),
    "privfeat/exceptions.py": rule(ours=SHARED),
    "privfeat/core": rule(ours=SHARED | {"privfeat.core"}),
    **core_rules(),
    "privfeat/solvers": rule(
        ["jax", "jaxtyping"],
        ours=SHARED | {"privfeat.core.noise.release", "privfeat.solvers"},
    ),
    "privfeat/estimation": rule(
        ["jaxtyping", "sklearn"],
        ours=SHARED | {"privfeat.core", "privfeat.data", "privfeat.estimation"},
    ),
    "privfeat/linear": rule(
        ["jax", "jaxtyping", "optax", "sklearn", "tqdm"],
        ours=SHARED
        | {
            "privfeat._compilation",
            "privfeat._encoding",
            "privfeat._notebook",
            "privfeat.core",
            "privfeat.data",
            "privfeat.estimation",
            "privfeat.linear",
            "privfeat.solvers",
        },
    ),
    "privfeat/selection": rule(
        ["sklearn"],
        ours=SHARED
        | {
            "privfeat.core",
            "privfeat.data",
            "privfeat.estimation",
            "privfeat._notebook",
            "privfeat.persistence",
            "privfeat.selection",
        },
    ),
    "privfeat/recalibration": rule(
        ["sklearn"],
        ours=SHARED
        | {
            "privfeat._notebook",
            "privfeat.core",
            "privfeat.data",
            "privfeat.estimation",
            "privfeat.persistence",
            "privfeat.recalibration",
        },
    ),
    "privfeat/networks": rule(
        ["filelock", "flax", "jax", "jaxtyping", "optax", "sklearn", "tqdm"],
        ours=SHARED
        | {
            "privfeat._compilation",
            "privfeat._encoding",
            "privfeat._notebook",
            "privfeat.core",
            "privfeat.data",
            "privfeat.estimation",
            "privfeat.networks",
        },
        lazy=["PIL", "orbax", "safetensors"],
    ),
    "privfeat/data": rule(
        ["h5py", "tqdm"],
        ours=SHARED | {"privfeat._files", "privfeat.data"},
        lazy=["PIL", "filelock"],
    ),
    "privfeat/audit": rule(["sklearn"], ours={"privfeat"}, lazy=["matplotlib"]),
    "privfeat/cli": rule(["sklearn"], ours={"privfeat"}, lazy=["matplotlib"]),
    "privfeat/analysis": rule(["sklearn"], ours={"privfeat"}, lazy=["matplotlib"]),
    "privfeat/report": rule(
        ["sklearn"], ours={"privfeat"}, lazy=["jinja2", "markupsafe", "matplotlib"]
    ),
    "privfeat/distributed.py": rule(ours={"privfeat.core"}, lazy=["jax"]),
    "privfeat/persistence.py": rule(["sklearn"], ours={"privfeat"}),
    "extract": rule(
        [
            *("PIL", "filelock", "h5py", "kymatio", "safetensors", "sklearn"),
            *("huggingface_hub", "timm", "torch", "torchvision", "tqdm"),
        ],
        ours=SHARED | {"privfeat._files", "privfeat.data", "privfeat_extract"},
    ),
}

# Imports that single files may make beside those of their folder.
ALSO_ALLOWED = {
    "privfeat/audit/one_run.py": {"jax_privacy"},
    "privfeat/core/accounting/pld.py": {"dp_accounting"},
    "privfeat/core/statement/composition.py": {"dp_accounting"},
    "privfeat/core/ledger/postgres_store.py": {"psycopg", "sqlalchemy"},
    "privfeat/core/statement/event_json.py": {"dp_accounting"},
    "privfeat/core/accounting/calibration.py": {"dp_accounting"},
    "privfeat/core/statement/selection.py": {"dp_accounting"},
    "privfeat/core/accounting/plan.py": {"dp_accounting"},
    "privfeat/core/statement/privacy_statement.py": {"dp_accounting"},
    "privfeat/solvers/optimizers.py": {"optax"},
}
# Standard modules that open a way around the design, and who may use them.
RESTRICTED = {
    "pickle": {"extract/weights.py"},  # for the name of an error that torch raises
    "random": set(),
    "secrets": {"privfeat/core/noise/keys.py"},
    "sqlite3": {"privfeat/core/ledger/sqlite_store.py"},
}


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
        return [f"{path}: no rule. Add a row to RULES in tests/test_imports.py."]
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
        ("privfeat/persistence.py", "import pickle", "pickle is restricted"),
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


def test_help_of_the_command_is_light():
    statement = "from privfeat.cli import build_parser; build_parser()"
    assert not loaded_after(statement) & {"jax", "sklearn", "h5py", "matplotlib"}


def test_extraction_without_weights_needs_no_torch():
    loaded = loaded_after("import privfeat_extract.cli")
    assert not loaded & {"torch", "torchvision", "timm", "jax"}


def test_feature_files_are_read_without_jax():
    assert not loaded_after("import privfeat.data") & {"jax", "torch", "sklearn"}
