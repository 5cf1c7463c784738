"""Mutation testing of the modules that decide privacy: ``make mutation``.

The operators of cosmic-ray change one thing at a time in a module of ``privfeat/core``;
then its tests run, and one of them must fail. A mutant that all tests pass must be in
``accepted_mutants.json`` with the reason why it does not weaken privacy; a line without
an arrow accepts every change of it. The tests run in a fork of a process that has the
libraries, those first that found a mutant before; no file is changed.
"""

import argparse
import ast
import contextlib
import difflib
import importlib.abc
import importlib.util
import json
import os
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.audited import CORE, ROOT, core_files
from tests.tests_of import TESTS

ACCEPTED = Path(__file__).with_name("accepted_mutants.json")
# The tests of these start processes or a server, which import them unchanged.
NOT_HERE = {
    *(
        "sums.processes",
        "ledger.stores.postgres_store",
        "ledger.stores.postgres_tables",
    ),
}
# A process of its own imports the module unchanged, from a server that does not fork.
IN_PROCESS = "not processes_are and not killed_at and not full_disk and not read_only"
OPERATORS = (
    *("NumberReplacer", "AddNot", "ZeroIterationForLoop", "ReplaceBreakWithContinue"),
    *("ReplaceAndWithOr", "ReplaceOrWithAnd"),
    *("ReplaceTrueWithFalse", "ReplaceFalseWithTrue"),
    *("ReplaceUnaryOperator_Delete_USub", "ReplaceUnaryOperator_Delete_Not"),
    *("ReplaceBinaryOperator_Add_Sub", "ReplaceBinaryOperator_Sub_Add"),
    *("ReplaceBinaryOperator_Mul_Div", "ReplaceBinaryOperator_Div_Mul"),
    *("ReplaceBinaryOperator_Pow_Mul", "ReplaceBinaryOperator_BitAnd_BitOr"),
    *("ReplaceBinaryOperator_LShift_RShift", "ReplaceBinaryOperator_RShift_LShift"),
    *("ReplaceComparisonOperator_Lt_LtE", "ReplaceComparisonOperator_LtE_Lt"),
    *("ReplaceComparisonOperator_Gt_GtE", "ReplaceComparisonOperator_GtE_Gt"),
    *("ReplaceComparisonOperator_Lt_Gt", "ReplaceComparisonOperator_Gt_Lt"),
    *("ReplaceComparisonOperator_LtE_GtE", "ReplaceComparisonOperator_GtE_LtE"),
    *("ReplaceComparisonOperator_Eq_NotEq", "ReplaceComparisonOperator_NotEq_Eq"),
    *("ReplaceComparisonOperator_Is_IsNot", "ReplaceComparisonOperator_IsNot_Is"),
)
CPU_SECONDS = 120


class Mutant(NamedTuple):
    """A changed module, and how the change reads: old lines, an arrow, new lines."""

    source: str
    change: str


class Replaced(importlib.abc.MetaPathFinder, importlib.abc.SourceLoader):
    """Lets one module be imported from another source."""

    def __init__(self, name: str, path: Path, source: str) -> None:
        self._name, self._path, self._source = name, path, source

    def find_spec(self, name, path=None, target=None):
        if name == self._name:
            return importlib.util.spec_from_loader(name, self, origin=str(self._path))
        return None

    def get_filename(self, fullname):
        return str(self._path)

    def get_data(self, path):
        return self._source.encode()


def mutants(source: str) -> Iterator[Mutant]:
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    found, same = set(), ast.dump(ast.parse(source))
    for name in OPERATORS:
        operator = get_operator(f"core/{name}")()
        for occurrence in range(10_000):
            changed = mutate_code(source, operator, occurrence)
            if changed is None:
                break
            with contextlib.suppress(SyntaxError):
                tree = compile(changed, name, "exec", ast.PyCF_ONLY_AST)
                if changed in found or ast.dump(tree) == same:  # 1e29 + 1 is 1e29
                    continue
                if not positional_only(tree):
                    found.add(changed)
                    yield Mutant(changed, change_between(source, changed))


def positional_only(tree: ast.Module) -> bool:
    """Whether a product became a division where a ``*`` separates parameters."""
    parts = (node for node in ast.walk(tree) if isinstance(node, ast.arguments))
    return any(part.posonlyargs for part in parts)


def change_between(old: str, new: str) -> str:
    lines = list(difflib.ndiff(old.splitlines(), new.splitlines()))
    sides = (
        " ".join(line[2:].strip() for line in lines if line.startswith(sign))
        for sign in ("- ", "+ ")
    )
    return " => ".join(sides)


def modules_of_the_core() -> list[str]:
    """Return the audited modules by the names that ``accepted_mutants.json`` has."""
    files = (file.relative_to(CORE).with_suffix("") for file in core_files())
    names = [".".join(file.parts) for file in files if file.name != "__init__"]
    return [name for name in names if name not in NOT_HERE]


def path_of(module: str) -> Path:
    return CORE.joinpath(*module.split(".")).with_suffix(".py")


def tests_of(module: str) -> list[Path]:
    *folder, name = module.split(".")
    home = ROOT.joinpath("tests", "core", *folder)
    names = TESTS.get(module, (name,))
    files = [home / f"{f'test_{n}' if '/' not in n else n}.py" for n in names]
    return [*files, ROOT / "tests" / "core" / "test_immutable.py"]


class Killers:
    """A plugin of pytest: tests that failed before run first, the newest before all."""

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._reading, False)
        self._names: list[str] = []

    def update(self) -> None:
        """Read which test failed in a fork, if one did."""
        with contextlib.suppress(BlockingIOError):
            self._names += os.read(self._reading, 2**16).decode().splitlines()

    def pytest_collection_modifyitems(self, items):
        places = {name: place for place, name in enumerate(self._names)}
        items.sort(key=lambda item: -places.get(item.nodeid, -1))

    def pytest_runtest_logreport(self, report):
        if report.failed:
            os.write(self._writing, f"{report.nodeid}\n".encode())


KILLERS = Killers()


def killed(module: str, mutant: Mutant) -> bool:
    """Run the tests of a module against a mutant of it, in a fork of this process."""
    KILLERS.update()
    child = os.fork()
    if child == 0:
        # An endless loop is noticed as well, and a busy machine is not.
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        status = 1
        try:
            status = run_tests(module, mutant)
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    return status != 0


def run_tests(module: str, mutant: Mutant) -> int:
    import pytest

    path = path_of(module)
    sys.meta_path.insert(0, Replaced(f"privfeat.core.{module}", path, mutant.source))
    files = [str(file) for file in tests_of(module)]
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    options = ["-x", "-q", "-p", "no:cacheprovider", "-k", IN_PROCESS]
    options += ["-m", "not slow and not postgres"]
    imported = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
    return int(pytest.main([*options, *imported, *files], plugins=[KILLERS]))


def import_libraries() -> None:
    """Import what takes long; nothing of ours, and no JAX backend is started."""
    for name in (
        *("dp_accounting", "dp_accounting.pld", "dp_accounting.rdp", "jax.numpy"),
        *("hypothesis.extra.numpy", "optax", "scipy.stats", "sklearn.base", "tqdm"),
    ):
        importlib.import_module(name)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", default=modules_of_the_core())
    modules = parser.parse_args().modules
    os.chdir(ROOT)
    os.environ["HYPOTHESIS_PROFILE"] = "ci"
    import_libraries()
    accepted = json.loads(ACCEPTED.read_text())
    n_bad = 0
    for module in modules:
        source = path_of(module).read_text()
        if killed(module, Mutant(source, "")):
            print(f"{module}: its tests must pass before mutation, but fail.")
            return 1
        n_all, n_survived, n_accepted, began = 0, 0, 0, time.monotonic()
        for mutant in mutants(source):
            n_all += 1
            own, old = accepted.get(module, {}), mutant.change.split(" => ")[0]
            # where every change of a line is accepted no test need run
            if old not in own and killed(module, mutant):
                continue
            n_survived += 1
            reason = own.get(mutant.change, own.get(old))
            n_accepted += reason is not None
            mark = "SURVIVED" if reason is None else "accepted"
            print(f"{mark} {module}: {mutant.change}", flush=True)
        n_bad += n_survived - n_accepted
        print(
            f"{module}: {n_all} mutants, {n_all - n_survived} killed, {n_accepted} "
            f"accepted, {n_survived - n_accepted} survived "
            f"({time.monotonic() - began:.0f} s)",
            flush=True,
        )
    return int(n_bad > 0)


if __name__ == "__main__":
    sys.exit(main())
