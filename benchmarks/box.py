"""Is what the README's table says of its peers true of their packages?

Each filled cell names what stands for it: definitions of the package, which must be
there. Each empty cell has a pattern, which no import of the package and no name of a
module, class, function, method or parameter may match; tests and examples do not count.
The packages are read, not installed, from a folder that this filled:

    pip download --no-deps -d wheels opacus==1.6.0 jax-privacy==2.0.0 diffprivlib==0.6.6
    python benchmarks/box.py --wheels wheels --out box.json
"""

import argparse
import ast
import re
from pathlib import Path
from zipfile import ZipFile

from _results import keep_tables, markdown_table, write_json

README = Path(__file__).resolve().parent.parent / "README.md"
PEERS = ("opacus", "jax-privacy", "diffprivlib")
# Row of the table -> what would show that an empty cell is wrong, and what stands for
# the filled ones.
ROWS = {
    "scikit-learn estimators": (
        "import sklearn",
        {
            "diffprivlib": [
                *("LinearRegression", "LogisticRegression", "DecisionTreeClassifier"),
                *("GaussianNB", "KMeans", "StandardScaler", "PCA", "import sklearn"),
            ]
        },
    ),
    "training of whole networks": (
        r"import (torch|jax|flax|keras|tensorflow)|\w*per_example\w*",
        {
            "opacus": ["PrivacyEngine.make_private", "import torch"],
            "jax-privacy": ["clipped_grad", "keras_api.make_private", "import jax"],
        },
    ),
    "cost of Gaussian noise by": (
        "",
        {
            "opacus": ["PRVAccountant", "RDPAccountant", "GaussianAccountant"],
            "jax-privacy": ["PldAccountantConfig", "RdpAccountantConfig"],
            "diffprivlib": ["BudgetAccountant.total"],
        },
    ),
    "budget kept between programs": (
        "import (sqlite3|psycopg|sqlalchemy|filelock|fcntl)|.*ledger.*",
        {},
    ),
    "several records of one person": (
        ".*(user|person|group_size).*",
        {"jax-privacy": ["UserSelectionStrategy"]},
    ),
    "private test accuracy; a report to sign; ONNX": (
        ".*(private_eval|private_accuracy|model_card|statement|html|onnx).*",
        {},
    ),
    "noise whose low bits leak nothing": (
        ".*(secure|discrete_gauss|discrete_laplace|snapping).*",
        {
            "opacus": ["PrivacyEngine.__init__(secure_mode)"],
            "diffprivlib": ["GaussianDiscrete", "Snapping", "Geometric"],
        },
    ),
    "noise correlated over steps": (
        ".*(banded|bandmf|toeplitz|factorization|correlated).*",
        {
            "jax-privacy": ["ColumnNormalizedBanded", "BufferedToeplitz"],
        },
    ),
    "audits of a fit": (
        ".*(audit|canary|membership).*",
        {"jax-privacy": ["CanaryScoreAuditor"]},
    ),
}


def main() -> None:
    """Print what stands for each cell; fail if one is not as the README has it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--wheels", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    wheels = {peer: wheel_of(peer, args.wheels) for peer in PEERS}
    names = {peer: names_of(wheel) for peer, wheel in wheels.items()}
    versions = {peer: wheel.name.split("-")[1] for peer, wheel in wheels.items()}
    cells = cells_of(README.read_text(encoding="utf-8"), versions)
    faults = [fault for row in ROWS for fault in faults_of(row, cells, names)]
    header = ["", *(f"{peer} {versions[peer]}" for peer in PEERS)]
    print(markdown_table(header, [shown(row) for row in ROWS], "box"))
    if faults:
        raise SystemExit("\n".join(faults))
    if args.out:
        found = {row: filled for row, (_, filled) in ROWS.items()}
        write_json(args.out, {"versions": versions, "found": found})
    keep_tables(args.out)


def wheel_of(peer: str, folder: Path) -> Path:
    """Return the one wheel of a package."""
    (wheel,) = folder.glob(f"{peer.replace('-', '_')}-*.whl")
    return wheel


def names_of(wheel: Path) -> set[str]:
    """Return all that a package defines and imports, by name."""
    package, found = wheel.name.split("-")[0], set()
    with ZipFile(wheel) as archive:
        for name in archive.namelist():
            parts = name.removesuffix(".py").split("/")
            tests = any(re.match("test|.*_test$", part) for part in parts)
            if name.endswith(".py") and parts[0] == package and not tests:
                found |= names_in(ast.parse(archive.read(name)), parts[-1])
    return found


def names_in(module: ast.Module, name: str) -> set[str]:
    """Return what a module defines and imports; ``f(p)`` is a parameter of ``f``."""
    found = {name}
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            found |= {f"import {alias.name.split('.')[0]}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(f"import {node.module.split('.')[0]}")
    for node in module.body:
        for within, place in ((node, ""), *inside(node)):
            if isinstance(within, ast.ClassDef | ast.FunctionDef):
                path = f"{place}{within.name}"
                found |= {path, f"{name}.{path}"}
            if isinstance(within, ast.FunctionDef):
                taken = within.args.args + within.args.kwonlyargs
                found |= {f"{path}({one.arg})" for one in taken}
    return found


def inside(node: ast.stmt) -> list[tuple[ast.stmt, str]]:
    """Return the methods of a class, and where they are."""
    body = node.body if isinstance(node, ast.ClassDef) else []
    return [(within, f"{node.name}.") for within in body]


def cells_of(readme: str, versions: dict[str, str]) -> dict[tuple[str, str], str]:
    """Return the cells of the README's table, by row and package.

    Raises
    ------
    ValueError
        If the table names another version, or has other rows.
    """
    table = readme.partition("## What is in the box\n\n")[2].partition("\n\n")[0]
    lines = [line.split("|")[1:-1] for line in table.split("\n")]
    head, _, *rows = [[cell.strip() for cell in line] for line in lines]
    wanted = {p: f"{p} {number.rpartition('.')[0]}" for p, number in versions.items()}
    if not set(wanted.values()) <= set(head):
        raise ValueError(f"the table must be of {[*wanted.values()]}, got {head}.")
    if [row[0] for row in rows] != [*ROWS]:
        raise ValueError(f"the table must have the rows {[*ROWS]}.")
    columns = {peer: head.index(name) for peer, name in wanted.items()}
    return {(r[0], peer): r[column] for r in rows for peer, column in columns.items()}


def faults_of(
    row: str, cells: dict[tuple[str, str], str], names: dict[str, set[str]]
) -> list[str]:
    """Return what is wrong with a row of the README's table."""
    pattern, filled = ROWS[row]
    faults = []
    for peer in PEERS:
        missing = set(filled.get(peer, [])) - names[peer]
        if bool(cells[row, peer]) != (peer in filled):
            faults.append(f"{row}, {peer}: the README has {cells[row, peer]!r}.")
        elif missing:
            faults.append(f"{row}, {peer}: {sorted(missing)} are not there.")
        elif peer not in filled:
            found = {n for n in names[peer] if re.fullmatch(pattern, n, re.IGNORECASE)}
            if found:
                faults.append(f"{row}, {peer}: there are {sorted(found)}.")
    return faults


def shown(row: str) -> list[str]:
    """Return a row of the record."""
    filled = ROWS[row][1]
    return [row, *(", ".join(f"`{n}`" for n in filled.get(peer, [])) for peer in PEERS)]


if __name__ == "__main__":
    main()
