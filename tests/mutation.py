"""Mutation testing of the modules that decide privacy: ``make mutation``.

The operators of cosmic-ray change one thing at a time in a module of ``privfeat/core``;
then its tests run, and one of them must fail. A mutant that all tests pass must be in
``accepted_mutants.json`` with the reason why it does not weaken privacy; a line without
an arrow accepts every change of it.

The tests of a mutant run in a fork of a process that has imported the libraries, so
that a mutant takes seconds; no file is changed.
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

ROOT = Path(__file__).resolve().parent.parent
ACCEPTED = Path(__file__).with_name("accepted_mutants.json")
# The core, but for ``processes`` (its tests start processes, which import it
# unchanged), and ``ledger_postgres`` and ``ledger_postgres_tables`` (need a server).
MODULES = (
    *("sensitivity", "replacement", "accounting", "calibration"),
    *("noise_levels", "plan", "pld"),
    *("composition", "selection", "repetition", "confidence", "rounding"),
    *("mechanisms", "keys", "threefish", "noise", "discrete", "exact"),
    *("release", "observation"),
    *("clipping", "grid", "losses", "records", "statistics", "totals", "kernels"),
    *("devices", "folds", "leaving"),
    *("statement", "statement_json", "statement_words", "release_record"),
    *("budget", "charging", "event_json", "ledger", "ledger_rows", "ledger_store"),
    *("ledger_file", "ledger_disk", "ledger_log", "ledger_runs", "ledger_sqlite"),
)
# Where the tests are, if not in ``test_<module>.py`` alone.
TESTS = {
    "plan": ("plan", "noise_levels"),
    "calibration": ("calibration", "noise_levels"),
    "noise_levels": ("noise_levels", "calibration"),
    "clipping": ("clipping", "statistics"),
    "kernels": ("kernels", "statistics", "several_labels", "clipping"),
    "statistics": ("statistics", "several_labels"),
    "totals": ("totals", "statistics"),
    "release_record": ("statement", "statement_json"),
    "statement": ("statement", "statement_json"),
    "statement_words": ("statement_words", "statement", "repetition"),
    "event_json": ("ledger",),
    "ledger_file": ("ledger_file", "ledger_sqlite"),
    "ledger_rows": ("ledger", "ledger_file", "ledger_runs"),
    "ledger_store": ("ledger_store", "ledger"),
    "release": ("mechanisms", "noise"),
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

    found = set()
    for name in OPERATORS:
        operator = get_operator(f"core/{name}")()
        for occurrence in range(10_000):
            changed = mutate_code(source, operator, occurrence)
            if changed is None:
                break
            with contextlib.suppress(SyntaxError):
                tree = compile(changed, name, "exec", ast.PyCF_ONLY_AST)
                if changed not in found and not positional_only(tree):
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


def killed(module: str, mutant: Mutant) -> bool:
    """Run the tests of a module against a mutant of it, in a fork of this process."""
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

    path = ROOT / "privfeat" / "core" / f"{module}.py"
    sys.meta_path.insert(0, Replaced(f"privfeat.core.{module}", path, mutant.source))
    names = (*TESTS.get(module, (module,)), "immutable")
    files = [f"tests/core/test_{name}.py" for name in names]
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    options = ["-x", "-q", "-p", "no:cacheprovider", "-m", "not slow and not postgres"]
    options += ["-k", IN_PROCESS]
    imported = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
    return int(pytest.main([*options, *imported, *files]))


def import_libraries() -> None:
    """Import what takes long; nothing of ours, and no JAX backend is started."""
    for name in (
        *("dp_accounting", "dp_accounting.pld", "dp_accounting.rdp", "jax.numpy"),
        *("hypothesis.extra.numpy", "optax", "scipy.stats", "sklearn.base", "tqdm"),
    ):
        importlib.import_module(name)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", default=MODULES)
    modules = parser.parse_args().modules
    os.chdir(ROOT)
    os.environ["HYPOTHESIS_PROFILE"] = "ci"
    import_libraries()
    accepted = json.loads(ACCEPTED.read_text())
    n_bad = 0
    for module in modules:
        source = (ROOT / "privfeat" / "core" / f"{module}.py").read_text()
        if killed(module, Mutant(source, "")):
            print(f"{module}: its tests must pass before mutation, but fail.")
            return 1
        n_all, n_survived, n_accepted, began = 0, 0, 0, time.monotonic()
        for mutant in mutants(source):
            n_all += 1
            if killed(module, mutant):
                continue
            n_survived += 1
            own, old = accepted.get(module, {}), mutant.change.split(" => ")[0]
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
