"""The code blocks of README and guides, and how they are run."""

import shlex
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from privfeat.cli import main as privfeat

ROOT = Path(__file__).resolve().parent.parent.parent
README, GUIDES = ROOT / "README.md", ROOT / "docs" / "guides"
START = ROOT / "docs" / "start"
# Pages whose code is run, each in a fresh folder.
PAGES = {path.stem: path for path in (README, *sorted(GUIDES.glob("*.md")))}
# Pages that begin in an empty folder.
STARTS = {f"start/{path.stem}": path for path in sorted(START.glob("*.md"))}
# Beginnings of the commands that no test can run here, and what they need.
NOT_RUN = {
    "make quickstart": "an environment of its own",
    "make test": "the tests themselves",
    "source .venv/bin/activate": "that environment",
    "privfeat-extract --data hfds/": "the Hugging Face hub",
    "privfeat-extract --data photos/": "weights: tests/extract",
    "privfeat-extract --data reviews.csv": "an encoder: tests/extract/text",
    "privfeat-extract overlap private.h5": "your files: tests/extract/test_overlap.py",
    "torchrun": "8 GPUs: tests/extract/test_ranks.py",
    "srun": "a launcher: tests/linear/test_processes.py",
    "privfeat fit --distributed": "two hosts: tests/cli/test_distributed.py",
    "createdb": "PostgreSQL: tests/pages/test_postgres.py",
    "psql": "PostgreSQL: tests/pages/test_postgres.py",
    "privfeat budget create postgresql:": "PostgreSQL: tests/pages/test_postgres.py",
    "privfeat fit --ledger postgresql:": "PostgreSQL: tests/pages/test_postgres.py",
    "privfeat budget history postgresql:": "PostgreSQL: tests/pages/test_postgres.py",
    "privfeat train --data images/": "your images: tests/cli/test_train.py",
    "privfeat recipe results --public": "your images: tests/cli/test_recipe.py",
    "python benchmarks/reproduce_tables.py": "hours: tests/benchmarks",
}


@dataclass(frozen=True)
class Block:
    """A fenced block of code, and the line of the page on which it begins."""

    page: Path
    section: str
    language: str
    line: int
    code: str

    @property
    def commands(self) -> list[str]:
        """The lines of a shell block that are not empty."""
        return [line for line in self.code.splitlines() if line.strip()]


def blocks_of(page: Path) -> list[Block]:
    """Return all fenced blocks; a fence that says no language has the language ''."""
    blocks, section, start = [], "", None
    lines = page.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        if start is not None:
            if line.startswith("```"):
                code = "\n".join(lines[start + 1 : number])
                blocks.append(Block(page, section, lines[start][3:], start + 1, code))
                start = None
        elif line.startswith("```"):
            start = number
        elif line.startswith("## "):
            section = line[3:]
    assert start is None, f"a fence of {page.name} is left open"
    return blocks


BLOCKS = [b for page in (PAGES | STARTS).values() for b in blocks_of(page)]


def run_command(command: str) -> None:
    """Run a command of ours in this process."""
    from privfeat_extract.cli import main as privfeat_extract

    program, *arguments = shlex.split(command, comments=True)
    run = {"privfeat": privfeat, "privfeat-extract": privfeat_extract}[program]
    if arguments[-2:-1] == [">"]:
        with open(arguments[-1], "w") as file, redirect_stdout(file):
            assert run(arguments[:-2]) == 0, command
    else:
        assert run(arguments) == 0, command


def run_blocks(blocks: list[Block], names: dict[str, object]) -> None:
    """Run blocks in the working directory, with and into names, as they stand."""
    for block in blocks:
        if block.language == "sh":
            for command in block.commands:
                if not command.startswith(tuple(NOT_RUN)):
                    run_command(command)
        else:
            # so that a traceback shows the line of the page
            code = "\n" * block.line + block.code
            exec(compile(code, str(block.page), "exec"), names)
