"""No module imports another that imports it, be it through many others.

Imports inside functions, those for type checkers alone, and names of modules in tables
from which they are imported when they are first used count like those at the top.
What counts nowhere is that ``import a.b`` runs ``a/__init__.py`` before ``a/b.py``.
"""

import ast
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.test_imports import read_imports

ROOT = Path(__file__).resolve().parent.parent
# Each folder, and what stands before the names of its modules where they are imported:
# benchmarks are run in their folder, so that they import each other by bare names.
FOLDERS = {"privfeat": "privfeat.", "extract": "privfeat_extract.", "benchmarks": ""}


def module_name(path: str) -> str:
    """Return the name under which a file is imported."""
    folder, _, inside = path.partition("/")
    inside = inside.removesuffix(".py").replace("/", ".")
    return f"{FOLDERS[folder]}{inside}".removesuffix("__init__").removesuffix(".")


def read_graph(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """Return which modules each of some files imports; the text is given by path."""
    modules = {module_name(path) for path in sources}
    graph = {}
    for path, source in sources.items():
        wanted = set()
        for found in read_imports(path, source):
            module = found.module.removeprefix("benchmarks.")
            names = {f"{module}.{name}" for name in found.names}
            # a name may be a module, or an object that the module itself holds
            wanted |= names if names and names <= modules else {module, *names}
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Constant) and "." in str(node.value):
                wanted.add(node.value)  # perhaps of a table
        graph[module_name(path)] = wanted & modules
    return graph


def find_circle(graph: Mapping[str, set[str]]) -> list[str]:
    """Return modules of which each imports the next and the last the first, or none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))  # it names what is imported first
    return []


def all_sources() -> dict[str, str]:
    return {
        file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8")
        for folder in FOLDERS
        for file in sorted((ROOT / folder).glob("**/*.py"))
    }


def test_no_module_imports_itself_through_others():
    sources = all_sources()
    graph = read_graph(sources)
    assert len(graph) == len(sources)  # no two files have one name
    assert sum(map(len, graph.values())) > 500
    assert find_circle(graph) == []


A, B, C = "privfeat/core/a.py", "privfeat/core/b.py", "privfeat/core/c.py"


@pytest.mark.parametrize(
    "sources",
    [
        {A: "import privfeat.core.b", B: "from privfeat.core.a import f"},
        {A: "from privfeat.core import b", B: "from privfeat.core import a"},
        {A: "def f():\n    import privfeat.core.b", B: "import privfeat.core.a"},
        {
            A: "from typing import TYPE_CHECKING\n"
            "if TYPE_CHECKING:\n    from privfeat.core.b import B",
            B: "from privfeat.core.a import f",
        },
        {
            A: "from privfeat.core import b",
            B: "from privfeat.core import c",
            C: "from privfeat.core import a",
        },
        {
            "privfeat/core/__init__.py": "_HOMES = {'a': 'privfeat.core.a'}",
            A: "from privfeat.core import f",
        },
        {
            "extract/a.py": "def f():\n    from .b import B",
            "extract/b.py": "from .a import f",
        },
        {
            "benchmarks/a.py": "from _b import f",
            "benchmarks/_b.py": "def f():\n    from a import g",
        },
        {
            "benchmarks/a/b.py": "from .c import f",
            "benchmarks/a/c.py": "from a.b import g",
        },
    ],
)
def test_a_planted_circle_is_found(sources):
    circle = find_circle(read_graph(sources))
    assert set(circle) == set(map(module_name, sources))
    assert circle[0] == circle[-1]


def test_modules_in_a_row_make_no_circle():
    sources = {
        "privfeat/core/__init__.py": "from privfeat.core.a import f",
        A: "from privfeat.core import b, c",
        B: "from privfeat.core import c",
        C: "import math",
    }
    assert find_circle(read_graph(sources)) == []
