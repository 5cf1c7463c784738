"""Print the tables of a result again, or put all of them into ``RESULTS.md``.

    python benchmarks/table.py benchmarks/results/selection.json
    python benchmarks/table.py --rewrite

In ``RESULTS.md`` a table stands between ``<!-- selection.json: digits -->`` (file in
``results/``, name of the table) and ``<!-- end -->``, below a line that says where it
comes from. ``tests/benchmarks/test_results.py`` fails where the two differ.
"""

import argparse
import json
import re
from pathlib import Path
from typing import Any

from _results import RESULTS, markdown_table

DOCUMENT = Path(__file__).with_name("RESULTS.md")
BLOCK = re.compile(
    r"^<!-- (?P<file>[\w.]+): (?P<name>.+?) -->\n(?P<body>.*?)^<!-- end -->$",
    re.MULTILINE | re.DOTALL,
)
# Of the versions, those that a reader looks for first; the file has all.
SHOWN = ("jax", "numpy", "scikit-learn")


def main() -> None:
    """Print or rewrite."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", nargs="*", type=Path, help="JSON files")
    parser.add_argument("--rewrite", action="store_true", help="of RESULTS.md")
    args = parser.parse_args()
    for path in args.results:
        result = json.loads(path.read_text(encoding="utf-8"))
        for name in result["tables"]:
            print(f"{name}\n\n{render(result, name)}")
    if args.rewrite:
        text = DOCUMENT.read_text(encoding="utf-8")
        DOCUMENT.write_text(BLOCK.sub(rewritten, text), encoding="utf-8")


def rewritten(block: re.Match[str]) -> str:
    """Return a block of RESULTS.md as its file has it."""
    result = json.loads((RESULTS / block["file"]).read_text(encoding="utf-8"))
    first = f"<!-- {block['file']}: {block['name']} -->"
    return f"{first}\n{render(result, block['name'])}<!-- end -->"


def render(result: dict[str, Any], name: str) -> str:
    """Return where a table comes from, and the table."""
    table = result["tables"][name]
    return f"{origin(result)}\n\n{markdown_table(table['header'], table['rows'])}\n"


def origin(result: dict[str, Any]) -> str:
    """Return command, date, commit, versions and machine in one paragraph."""
    versions = result["versions"]
    parts = [f"Python {result['python']}"]
    parts += [f"{name} {versions[name]}" for name in SHOWN if name in versions]
    run = f"`{result['command']}`: {result['date']}, commit {result['commit']}"
    cores = f"{result['cores']} core{'s' if result['cores'] != 1 else ''}"
    on = f"{result['processor']}, {cores}"
    copied = "" if result["source"] == "run" else f" *{result['source']}*"
    return f"{run}, {', '.join(parts)}; {on}.{copied}"


if __name__ == "__main__":
    main()
