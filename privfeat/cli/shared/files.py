"""Files and ledgers as the command line names them."""

import tempfile
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privfeat.cli.shared.terminal import CommandError, warn

if TYPE_CHECKING:
    from privfeat import PrivacyLedger
    from privfeat.cli.shared.tables import Declared, TableRows
    from privfeat.data import FeatureSplit


def open_rows(
    argument: str,
    preferred: str,
    declared: "Declared | None" = None,
    *,
    option: str = "",
    fitted_on: Mapping[str, Any] | None = None,
    one_label: bool = False,
    labelled: bool = True,
) -> "FeatureSplit | TableRows":
    """Return the rows that an option names: of a feature file, or of a table.

    Both have ``X``, ``y``, ``groups`` and ``class_names``. A table is read by what is
    ``declared`` of it (`Declared.read`), and a feature file by `open_split`. With
    ``fitted_on``, by `require_like`, those of a feature file must be made like these.
    """
    from privfeat.data.tables.files import FORMATS, is_table

    if declared is not None and not is_table(argument):
        raise CommandError(
            f"{argument} must be a table, since columns of one are declared: a file "
            f"that ends in {', '.join(FORMATS)}."
        )
    if declared is not None:
        return declared.read(argument, labelled=labelled)
    if is_table(argument):
        raise CommandError(
            f"{argument} is a table, and what is publicly known of its columns must be "
            "declared. Pass --columns and --target; `privfeat columns` makes a draft. "
            "A model that was fitted to features takes features."
        )
    rows = open_split(argument, preferred, one_label=one_label)
    if fitted_on:
        require_like(argument, fitted_on, option)
    return rows


def open_split(
    argument: str, preferred: str, *, one_label: bool = False
) -> "FeatureSplit":
    """Return the split that ``FILE`` or ``FILE:SPLIT`` names.

    Without a name, ``preferred`` is taken, or the only split that the file has. With
    ``one_label`` each row must have one label.
    """
    from privfeat.data import open_features

    path, name = split_argument(argument)
    file = open_features(path)
    if name is None:
        name = preferred if preferred in file or len(file) != 1 else next(iter(file))
    if name not in file:
        raise CommandError(
            f"{path} has no split {name!r}. Name one of {', '.join(file)}: FILE:SPLIT."
        )
    if one_label and file[name].y.ndim != 1:
        raise CommandError(f"{argument} must have one label a row.")
    return file[name]


def check_knows_table(argument: str, declared: "Declared | None") -> None:
    """Refuse a table for a saved model that knows no columns of one."""
    from privfeat.data.tables.files import is_table

    if declared is None and is_table(argument):
        raise CommandError(
            f"{argument} is a table, but the model knows no columns of one: it takes "
            "features. If it was fitted to columns of a table, save it with what is "
            "declared of them: privfeat.save(..., table=...)."
        )


def open_public(
    args: Namespace,
    name: str,
    fitted_on: Mapping[str, Any],
    private: "FeatureSplit | TableRows | None",
    declared: "Declared | None" = None,
    **reading: bool,
) -> "FeatureSplit | TableRows":
    """Return the rows that an option of this name says are public, if they can be.

    ``private``: that of the fit; None where a saved model does not know it.
    CommandError if it holds rows of the fit, or its records chose which rows; if the
    fit is not known, any records.
    """
    from privfeat.data.sharing import share_rows
    from privfeat.data.splits import CLASSES

    argument = getattr(args, name)
    preferred = {"public": "public", "prior": CLASSES}.get(name, "test")
    asked: Any = {"option": f"--{name}", "fitted_on": fitted_on, **reading}
    rows = open_rows(argument, preferred, declared, **asked)
    if private is not None and share_rows(rows, private):
        raise CommandError(
            f"--{name} must not be the training split, share a shard with it, or be "
            f"made of the same images, got {argument}. No statement covers public rows."
        )
    check_whole(f"--{name}", argument, rows)
    return rows


def check_whole(option: str, argument: str, rows: Any) -> None:
    """Refuse public rows that private records chose, those of any fit."""
    if getattr(rows.X, "chosen_by", ()):
        raise CommandError(
            f"{option} must not be chosen by private records, got {argument}, from "
            "which their near-duplicates were taken. The missing rows reveal "
            "them: pass the whole file."
        )


def check_named_alike(
    argument: str, rows: Any, names: Sequence[str] | None, of: str
) -> None:
    """Refuse labels that are numbers of other classes, where both sides name them."""
    own = rows.class_names
    if own is not None and names is not None and list(own) != list(names):
        raise CommandError(
            f"{argument} must have the classes of {of} in their order, {list(names)}, "
            f"got {list(own)}: labels are their numbers. Write it with these class "
            "names, and labels by them."
        )


def require_like(argument: str, fitted_on: Mapping[str, Any], name: str) -> None:
    """Accept features that were made like those of a model.

    CommandError if they are of another network. Of other pixels or views: a warning.
    """
    from privfeat.data.origin import NETWORK, differing, value

    found = origin(argument)
    for key in differing(fitted_on, found):
        sentence = (
            f"{name} must be features that were made like those of the training rows, "
            f"but {key} is {value(found, key)!r} and was {value(fitted_on, key)!r}. "
            "Extract them in the same way."
        )
        if key in NETWORK:
            raise CommandError(sentence)
        warn(f"{sentence} (Predictions are worse than they could be.)")


def origin(argument: str) -> dict[str, Any]:
    """Return how the features of ``FILE`` or ``FILE:SPLIT`` were made."""
    from privfeat.data import open_features
    from privfeat.data.tables.files import is_table

    if is_table(argument):
        return {}  # nothing made them
    return open_features(split_argument(argument)[0]).origin


def split_argument(argument: str) -> tuple[str, str | None]:
    """Return path and split of ``FILE`` or ``FILE:SPLIT``."""
    path, colon, name = argument.rpartition(":")
    if not colon or Path(argument).exists() or set(name) & set("/\\") or not name:
        return argument, None
    return path, name


def open_ledger(args: Namespace) -> "PrivacyLedger | None":
    """Return the ledger that ``--ledger`` and ``--dataset`` name, if they do."""
    if (args.ledger is None) != (args.dataset is None):
        raise CommandError("--ledger and --dataset must be given together, got one.")
    who = getattr(args, "who", None)
    if args.ledger is None:
        if who is not None:
            raise CommandError("--who must be given with --ledger, got it alone.")
        return None
    from privfeat import PrivacyLedger

    return PrivacyLedger(args.ledger, dataset=args.dataset, who=who)


@contextmanager
def alone(folder: Path, name: str, refusal: str) -> Iterator[None]:
    """Keep other commands from what this one pays for; they are refused at once."""
    from filelock import FileLock, Timeout

    path = folder / name
    try:
        held = FileLock(path, timeout=0).acquire()
    except Timeout as error:
        raise CommandError(refusal) from error
    with held:
        try:
            yield
        finally:
            with suppress(OSError):  # what failed before says more
                path.unlink()


@contextmanager
def output_folder(path: str) -> Iterator[Path]:
    """Make a folder and see that it can be written, before any budget is spent.

    What was made is removed again, where it is empty, if the body fails.
    """
    folder = Path(path)
    made = [part for part in (folder, *folder.parents) if not part.exists()]
    if folder.exists() and not folder.is_dir():
        raise CommandError(f"--out must be a folder, got the file {path!r}.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        yield folder
    except BaseException:
        for part in made:
            with suppress(OSError):  # not empty, or another process was faster
                part.rmdir()
        raise


def write_file(path: str | Path, content: bytes) -> None:
    """Write a file whole or not at all, and say so."""
    from privfeat._files import write_atomically

    write_atomically(path, content)
    print(f"{path} written")
