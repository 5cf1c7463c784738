"""The model that a command fits: its folder, before and after the fit."""

import shutil
import tempfile
import uuid
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from privfeat.cli.shared.files import output_folder
from privfeat.cli.shared.terminal import NOTHING_CHARGED, CommandError


@contextmanager
def model_folder(args: Namespace) -> Iterator[list[Any]]:
    """Make the folder of ``--out``, where it holds no model that must be kept.

    On Ctrl-C say whether budget was spent, and of what fails before the fit that it was
    not; the body adds the estimator that it fits to the list.
    """
    if (Path(args.out) / "model.json").exists() and not args.overwrite:
        raise CommandError(
            f"--out must not hold a model, got {args.out!r}. Pass --overwrite to "
            "replace it; its budget stays spent."
        )
    begun: list[Any] = []
    try:
        with output_folder(args.out):
            yield begun
    except KeyboardInterrupt as error:
        # `private_fit` has said more if it was in the middle of a fit
        if not getattr(error, "__notes__", ()):
            # set when a fit is charged, or would be
            spent = any(hasattr(estimator, "privacy_") for estimator in begun)
            error.add_note("Its budget is spent." if spent else "No budget was spent.")
        raise
    except Exception as error:
        if not begun and args.ledger is not None:
            error.add_note(NOTHING_CHARGED)
        raise


def save_model(
    args: Namespace,
    model: Any,
    class_names: Sequence[str] | None,
    test: tuple[Any, Any, Any] | None,
    features: Mapping[str, Any] | None = None,
    table: Mapping[str, Any] | None = None,
) -> None:
    """Save a model; print its score on ``test`` and its statement unless quiet.

    ``test`` is features or images, labels, and what to call them; ``features`` is how
    features were made, and ``table`` what is declared of the table that they are of.
    """
    known = {"class_names": class_names, "features": features, "table": table}
    if "verbose" in model.get_params(deep=False):
        model = model.set_params(verbose=0)
    _save_somewhere(args, model, known)
    if args.quiet:
        return
    print(f"model saved in {args.out}")
    if test is not None:
        X, y, name = test
        whole = " (rows with all labels right)" if y.ndim == 2 else ""
        figure = "accuracy" if hasattr(model, "classes_") else "R squared"
        print(
            f"test {figure} {model.score(X, y):.4f}{whole} on {name}\n"
            "  computed on the test labels: these must be public, or be accounted for "
            "separately; the statement below does not cover them"
        )
    print(model.privacy_)


def _save_somewhere(args: Namespace, model: Any, known: dict[str, Any]) -> None:
    """Save a model in ``--out`` or, since its budget is spent, anywhere.

    CommandError if it is not in ``--out``, as when its disk is full by now, or another
    command has saved a model there. The message says where it is.
    """
    from privfeat import persistence

    try:
        persistence.save(model, args.out, overwrite=args.overwrite, **known)
        return
    except OSError as error:
        why = error.strerror or str(error).rstrip(".")
    rescued = Path(tempfile.gettempdir(), f"privfeat-{uuid.uuid4().hex}")
    try:
        persistence.save(model, rescued, **known)
    except OSError:
        shutil.rmtree(rescued, ignore_errors=True)
        where = "It is lost"
    else:
        where = f"It is in {rescued}: move it"
    raise CommandError(
        f"the model could not be saved in {args.out} ({why}). {where}. Its budget is "
        "spent."
    )
