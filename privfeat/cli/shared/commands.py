"""Verbs that run others, and pay once for a fit if they are called again."""

import json
import shutil
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privfeat.cli.shared import files, options
from privfeat.cli.shared.terminal import CommandError

if TYPE_CHECKING:
    from privfeat import PrivacyLedger

_BEGUN = "fit.begun.json"


def words_of(args: Namespace, *names: str) -> list[str]:
    """Return the options of these names that were given, as words.

    >>> words_of(Namespace(n_fits=3, delta=None), "n_fits", "delta")
    ['--n-fits', '3']
    """
    return [
        word
        for name, value in options.given(args, names).items()
        for word in (options.name_of(name), str(value))
    ]


def flags_of(args: Namespace, *names: str) -> list[str]:
    """Return those of these flags that were given, as words."""
    return [options.name_of(name) for name in names if getattr(args, name)]


def settings_of(args: Namespace) -> list[str]:
    """Return what was given with ``--set``, as words."""
    return [word for one in args.set for word in ("--set", one)]


def call(verb: Any, *words: Any) -> None:
    """Run the command line of a verb."""
    parser = ArgumentParser(prog="privfeat")
    verb.add_parser(parser.add_subparsers(dest="verb"))
    name = verb.__name__.rpartition(".")[2]
    args = parser.parse_args([name, *map(str, words)])
    args.run(args)


@contextmanager
def paid_once(
    folder: Path, ledger: "PrivacyLedger | None", *, network: bool
) -> Iterator[list[str]]:
    """Give the further options of a fit that may have been stopped, to pay for it once.

    A network goes on from its checkpoints, or is saved if it is done; they are removed
    when there is a model. A fit that was stopped before its charge begins anew. What
    was charged since and left no checkpoint is refused, as all of other estimators.
    """
    kept = folder / "unfinished-training"  # no other folder's name: it is removed
    note = folder / _BEGUN
    if ledger is not None:
        if not note.exists():
            known = json.dumps({"charges": len(ledger.history)})
            files.write_file(note, f"{known}\n".encode())
        before = int(json.loads(note.read_text(encoding="utf-8"))["charges"])
        lost = [each.number for each in ledger.history[before:]]
        if lost and not any(one.name.isdigit() for one in kept.glob("*")):
            raise CommandError(
                f"the fit in {folder} must not be paid for twice: it was stopped, and "
                f"since it began charge {', '.join(map(str, lost))} of "
                f"{ledger.budget.dataset!r} was made. If it was for this fit, its "
                f"budget is spent. Delete {note} to fit, and to pay, once more."
            )
    resumed = ["--checkpoints", str(kept), *["--restore"] * _is_finished(kept)]
    yield resumed if network else []
    shutil.rmtree(kept, ignore_errors=True)
    note.unlink(missing_ok=True)


def _is_finished(kept: Path) -> bool:
    """Return whether a folder of checkpoints has a network that is trained."""
    if not kept.is_dir():
        return False
    from privfeat.networks.training.checkpoints import open_checkpoints

    with open_checkpoints(kept) as checkpoints:
        try:
            checkpoints.finished()
        except ValueError:  # there is none, or it cannot be read: `train` says so
            return False
    return True
