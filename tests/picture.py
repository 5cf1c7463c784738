"""The picture of the house in ``docs/design.md``, drawn from the imports.

``python tests/picture.py`` draws it anew. An arrow goes from a room to one that it
uses; arrows that follow from others, by a way over other rooms, are left out.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "design.md"
_START, _END = "<!-- drawn by tests/picture.py -->\n", "<!-- end -->"
# What every room uses: arrows to it would say nothing.
_FOUNDATION = "privfeat"


def rooms() -> dict[str, set[str]]:
    """Return each room, by its module name, with the rooms that it imports."""
    found: dict[str, set[str]] = defaultdict(set)
    for file in sorted([*ROOT.glob("privfeat/**/*.py"), *ROOT.glob("extract/**/*.py")]):
        here = _room(_module(file))
        found[here] |= {_room(name) for name in _imported(file)} - {here, _FOUNDATION}
    found.pop(_FOUNDATION, None)
    return dict(found)


def _module(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    name = ".".join(parts).removesuffix(".__init__")
    return (
        name.replace("extract", "privfeat_extract", 1)
        if parts[0] == "extract"
        else name
    )


def _room(module: str) -> str:
    """Return the folder of a module; the files of the package itself are one room."""
    parts = module.split(".")
    if parts[0] == "privfeat_extract":
        return "extract"
    depth = 3 if parts[:2] == ["privfeat", "core"] else 2
    path = ROOT.joinpath(*parts[:depth])
    while not path.is_dir():
        path = path.parent
    return ".".join(path.relative_to(ROOT).parts)


def _imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and not node.level:
            if (node.module or "").split(".")[0] in {"privfeat", "privfeat_extract"}:
                for alias in node.names:
                    yield f"{node.module}.{alias.name}"


def needed(arrows: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the arrows that do not follow from others."""

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        left = [start]
        while left:
            for room in arrows.get(left.pop(), set()) - seen:
                seen.add(room)
                left.append(room)
        return seen

    return {
        room: {
            end
            for end in ends
            if not any(end in reached(other) for other in ends - {end})
        }
        for room, ends in arrows.items()
    }


def draw() -> str:
    """Return the picture as a Mermaid diagram."""
    arrows = rooms()
    core = sorted(room for room in arrows if room.startswith("privfeat.core"))
    others = sorted(arrows.keys() - {*core})
    lines = ["```mermaid", "flowchart TD", "  subgraph core [core: audited]"]
    lines += [f"  {_node(room)}" for room in core]
    lines += ["  end", *map(_node, others)]
    for room, ends in sorted(needed(arrows).items()):
        lines += [f"  {_id(room)} --> {_id(end)}" for end in sorted(ends)]
    return "\n".join([*lines, "```", ""])


def _id(room: str) -> str:
    return room.replace(".", "_")


def _node(room: str) -> str:
    name = "private_fit" if room == "privfeat.core" else room.rpartition(".")[2]
    return f"  {_id(room)}[{name}]"


def page() -> str:
    """Return the page with its picture drawn anew."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(_START)
    return before + _START + draw() + rest[rest.index(_END) :]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(draw())
