"""The audited files, as ``privfeat/core/README.md`` lists them.

``python -m tests.audited`` prints them as coverage wants them, with commas between.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORE = ROOT / "privfeat" / "core"
# a row of a table: its first cell names a file or a folder, plain or as a link
_ROW = re.compile(r"^\| \[?`([\w/]+?)(\.py|/)?`")


def _rows() -> tuple[list[str], list[str]]:
    core, beyond = (CORE / "README.md").read_text().split("## Beyond this folder")
    return tuple(
        [match[1] for line in part.splitlines() if (match := _ROW.match(line))]
        for part in (core, beyond)
    )


def _files(parent: Path, name: str) -> list[Path]:
    if (parent / name).is_dir():
        return sorted((parent / name).rglob("*.py"))
    return [parent / f"{name}.py"]


def stages() -> list[str]:
    """Return the folders of the core, in the order of the argument."""
    return [name for name in _rows()[0] if (CORE / name).is_dir()]


def core_files() -> list[Path]:
    """Return the files of the core, in the order of the argument."""
    return [file for name in _rows()[0] for file in _files(CORE, name)]


def files_beyond() -> list[Path]:
    """Return the audited files outside the core."""
    return [file for name in _rows()[1] for file in _files(ROOT / "privfeat", name)]


def audited_files() -> list[Path]:
    """Return the audited files, of the core and outside of it."""
    return [*core_files(), CORE / "__init__.py", *files_beyond()]


if __name__ == "__main__":
    print(",".join(str(file.relative_to(ROOT)) for file in audited_files()))
