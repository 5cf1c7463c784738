"""How much `pip install privfeat` puts on a disk and downloads, without extras.

Of the environment that runs this: the base requirements of privfeat, what these require
in turn, and the size of the files that each brought; and of its wheel, in a folder that
``pip download -d wheels -c constraints.txt`` of the same requirements filled:

    python benchmarks/installed_size.py --wheels wheels --out installed_size.json
"""

import argparse
import re
from importlib import metadata
from pathlib import Path

from _results import keep_tables, markdown_table, write_json
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

MB = 1e6
SHOWN = 8


def main() -> None:
    """Print the largest packages and the sum of all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--wheels", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    sizes = {name: installed(name) for name in needed("privfeat")}
    wheels = downloaded(args.wheels)
    largest = sorted(sizes, key=sizes.__getitem__, reverse=True)
    rest = largest[SHOWN:]
    rows = [[name, mb(sizes[name]), mb(wheels[name])] for name in largest[:SHOWN]]
    rows += [
        [
            f"{len(rest)} others",
            mb(sum(sizes[name] for name in rest)),
            mb(sum(wheels[name] for name in rest)),
        ],
        ["all", mb(sum(sizes.values())), mb(sum(wheels[name] for name in sizes))],
    ]
    header = ["package", "installed, MB", "downloaded, MB"]
    print(markdown_table(header, rows, "installed"))
    if args.out:
        write_json(args.out, {"bytes": sizes, "wheels": wheels})
    keep_tables(args.out)


def needed(name: str) -> list[str]:
    """Return all packages that one requires without extras, itself among them."""
    found, new = dict.fromkeys([canonicalize_name(name)]), [name]
    while new:
        for line in metadata.requires(new.pop()) or []:
            required = Requirement(line)
            own = canonicalize_name(required.name)
            wanted = required.marker is None or required.marker.evaluate({"extra": ""})
            if wanted and own not in found:
                found[own] = None
                new.append(own)
    return list(found)


def installed(name: str) -> int:
    """Return how many bytes a package has on the disk, compiled code left out."""
    if name == "privfeat":  # it may be installed in place
        return sum(file.stat().st_size for file in Path("privfeat").rglob("*.py"))
    files = metadata.files(name) or []
    paths = [Path(str(file.locate())) for file in files if file.suffix != ".pyc"]
    return sum(path.stat().st_size for path in paths if path.is_file())


def downloaded(folder: Path) -> dict[str, int]:
    """Return the size of each wheel, by the name of its package."""
    sizes = {"privfeat": 0}
    for wheel in folder.glob("*.whl"):
        name = canonicalize_name(re.split("-", wheel.name, maxsplit=1)[0])
        sizes[name] = wheel.stat().st_size
    return sizes


def mb(size: int) -> str:
    """Return a size in megabytes."""
    return f"{size / MB:.1f}"


if __name__ == "__main__":
    main()
