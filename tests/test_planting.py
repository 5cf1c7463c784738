"""The table of seams is whole, and no test replaces an internal beside it."""

import ast
from functools import wraps
from pathlib import Path

import pytest

from tests.planting import SEAMS, Plant, Seam, found

HERE = Path(__file__).parent
FILES = sorted(set(HERE.rglob("*.py")) - {HERE / "planting.py"})
OURS = ("privfeat", "privfeat_extract")
CHANGES = {"setattr", "delattr", "setitem", "delitem", "patch", "object"}


@pytest.mark.parametrize("name", SEAMS)
def test_every_seam_is_there(name):
    if SEAMS[name].places[0].startswith("privfeat_extract"):
        pytest.importorskip("torch")
    seam = SEAMS[name]
    for place in (*seam.places, seam.compiled or seam.places[0]):
        assert found(name, place)


def test_every_seam_is_used():
    words = set()
    for file in FILES:
        nodes = ast.walk(ast.parse(file.read_text()))
        words |= {node.value for node in nodes if isinstance(node, ast.Constant)}
    assert set(SEAMS) - words == set()


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(HERE)))
def test_no_test_replaces_what_is_ours_beside_the_table(file):
    assert replaced_in(file.read_text()) == []


def replaced_in(code):
    """Return the lines that replace an attribute of a module or class of ours."""
    tree = ast.parse(code)
    ours = names_of_ours(tree)
    lines = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            called = node.func
            name = getattr(called, "attr", getattr(called, "id", None))
            if name in CHANGES and is_ours(node.args[0], ours):
                lines.append(node.lineno)
        elif isinstance(node, ast.Assign | ast.Delete):
            for target in node.targets:
                if isinstance(target, ast.Attribute) and is_ours(target, ours):
                    lines.append(node.lineno)
    return lines


def names_of_ours(tree):
    """Return what a file calls modules and classes of ours: imports, and aliases."""
    ours, pairs = set(), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                module = getattr(node, "module", None) or alias.name
                if module.split(".")[0] in OURS:
                    ours.add(alias.asname or alias.name.split(".")[0])
        elif isinstance(node, ast.Assign):
            pairs += [(target, node.value) for target in node.targets]
        elif isinstance(node, ast.For):
            pairs.append((node.target, node.iter))
    for target, value in pairs:
        if is_ours(value, ours):
            names = (n for n in ast.walk(target) if isinstance(n, ast.Name))
            ours |= {n.id for n in names if isinstance(n.ctx, ast.Store)}
    return ours


def is_ours(node, ours):
    """Whether an expression is a module or class of ours, or holds one."""
    match node:
        case ast.Constant():
            return str(node.value).startswith(OURS)
        case ast.Name():
            return node.id in ours
        case ast.Attribute() | ast.Subscript():
            return is_ours(node.value, ours)
        case ast.Tuple() | ast.List() | ast.Set():
            return any(is_ours(element, ours) for element in node.elts)
        case ast.Dict():
            return any(is_ours(value, ours) for value in node.values)
    return False


@pytest.mark.parametrize(
    "code",
    [
        "from privfeat import load\nmonkeypatch.setattr(load, 'a', 1)",
        "import privfeat.core as c\nc.noise.draws.gaussian = 1",
        "from privfeat.core import noise\ndraws = noise.draws\nsetattr(draws, 'a', 1)",
        "from privfeat.core import a, b\nfor c in (a, b):\n  p.setattr(c, 'x', 1)",
        "monkeypatch.setattr('privfeat.core.noise.draws.gaussian', 1)",
        "import privfeat_extract as e\nm.setitem(e.run.TABLE, 'a', 1)",
    ],
)
def test_what_is_replaced_is_found(code):
    assert replaced_in(code)


@pytest.mark.parametrize(
    "code",
    [
        "import os\nmonkeypatch.setattr(os, 'fsync', 1)",
        "from privfeat import load\nclf = load('a')\nclf.coef_ = 1",
        "from tests import tiny\ntiny.SIZE = 1",
    ],
)
def test_what_others_own_is_left_alone(code):
    assert not replaced_in(code)


class Stand:
    """Stands for a class of ours."""

    def size(self):
        return 1


class Smaller(Stand):
    """Inherits what is replaced."""


def double(number):
    return 2 * number


@wraps(double)
def compiled(number):
    """Stand for compiled code, which keeps what it called first."""
    return -1


@pytest.fixture
def seams(monkeypatch):
    """Name the stands above as seams."""
    monkeypatch.setitem(SEAMS, "size", Seam((f"{__name__}:Stand.size",)))
    kept = f"{__name__}:compiled"
    monkeypatch.setitem(SEAMS, "kept", Seam((f"{__name__}:Stand.size",), kept))
    monkeypatch.setitem(SEAMS, "gone", Seam((f"{__name__}:Stand.height",)))
    monkeypatch.setitem(SEAMS, "moved", Seam(("privfeat.nowhere:a",)))


@pytest.mark.usefixtures("seams")
def test_a_fault_is_there_until_it_is_undone():
    plant = Plant()
    genuine = plant.genuine("size")
    plant("size", lambda self: genuine(self) + 1)
    with plant.context() as inner:
        inner("size", lambda self: 7)
        assert Stand().size() == 7
    assert Stand().size() == 2
    plant.undo()
    assert Stand().size() == 1


@pytest.mark.usefixtures("seams")
def test_a_fault_of_a_subclass_is_in_it_alone(plant):
    plant("size", lambda self: 7, of=Smaller)
    assert (Stand().size(), Smaller().size()) == (1, 7)


@pytest.mark.usefixtures("seams")
def test_what_is_compiled_is_not_while_a_fault_is_in_it(plant):
    with plant.context() as patch:
        patch("kept", lambda self: 7)
        assert compiled(3) == 6
    assert compiled(3) == -1


@pytest.mark.usefixtures("seams")
def test_a_seam_that_is_gone_says_where_to_name_its_new_place(plant):
    with pytest.raises(LookupError, match=r"'gone' must be at .*Stand\.height, found"):
        plant("gone", None)
    with pytest.raises(LookupError, match=r"'moved' must be at privfeat\.nowhere:a"):
        plant.genuine("moved")
    with pytest.raises(LookupError, match="no seam 'no such'"):
        plant("no such", None)
