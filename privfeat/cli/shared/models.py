"""The model that a command fits: its folder, before and after the fit."""

import shutil
import tempfile
import uuid
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from privfeat.cli.shared import files
from privfeat.cli.shared.terminal import NOTHING_CHARGED, CommandError


@contextmanager
def model_folder(args: Namespace) -> Iterator[list[Any]]:
    """Make the folder of ``--out``, where it holds no model that must be kept.

    On Ctrl-C say whether budget was spent, and of what fails before the fit that it was
    not; the body adds the estimator that it fits to the list.
    """
    begun: list[Any] = []
    try:
        with files.output_folder(args.out) as folder, _alone(args, folder):
            if (folder / "model.json").exists() and not args.overwrite:
                raise CommandError(
                    f"--out must not hold a model, got {args.out!r}. Pass --overwrite "
                    "to replace it; its budget stays spent."
                )
            yield begun
    except KeyboardInterrupt as error:
        # `private_fit` has said more if it was in the middle of a fit
        if not getattr(error, "__notes__", ()):
            error.add_note(
                "Its budget is spent." if _is_spent(begun) else "No budget was spent."
            )
        raise
    except Exception as error:
        told = " ".join([str(error), *getattr(error, "__notes__", ())])
        if args.ledger is not None and not begun:
            error.add_note(NOTHING_CHARGED)
        elif args.ledger is not None and _is_spent(begun) and "spent" not in told:
            error.add_note("The fit was charged: its budget is spent.")
        raise


def _is_spent(begun: Sequence[Any]) -> bool:
    # set when a fit is charged, or would be
    return any(hasattr(estimator, "privacy_") for estimator in begun)


def _alone(args: Namespace, folder: Path) -> AbstractContextManager[None]:
    """Keep other commands from a model that they would pay to replace."""
    if args.distributed:
        import jax

        if jax.process_index() > 0:  # of one command in several processes
            return nullcontext()
    refusal = f"--out must be written by one command at a time, got {args.out!r}."
    return files.alone(folder, ".fit.lock", f"{refusal} Pass another folder, or wait.")


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
            "  exact, as these records are public: the statement does not cover them"
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
    except Exception as error:  # noqa: BLE001 - the model is paid for
        told = getattr(error, "strerror", None) or str(error).rstrip(".")
        why = told or type(error).__name__
    rescued = Path(tempfile.gettempdir(), f"privfeat-{uuid.uuid4().hex}")
    try:
        persistence.save(model, rescued, **known)
    except Exception:  # noqa: BLE001 - the message says what became of it
        shutil.rmtree(rescued, ignore_errors=True)
        where = "It is lost"
    else:
        where = f"It is in {rescued}: move it"
    raise CommandError(
        f"the model could not be saved in {args.out} ({why}). {where}. Its budget is "
        "spent."
    )
