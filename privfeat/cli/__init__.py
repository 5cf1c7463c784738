"""The command ``privfeat``: one module per verb, each with ``add_parser`` and ``run``.

Failures are one line on stderr, or one for each column of a table: exit status 1, 2 for
a wrong command line, or 3 for a budget that has too little left; all statuses are in
docs/reference/commands.md.
"""

import argparse
import atexit
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from privfeat._version import __version__
from privfeat._warnings import STDERR
from privfeat.cli import (
    audit,
    doctor,
    evaluate,
    export,
    fit,
    predict,
    quickstart,
    report,
    sanity,
    statement,
    train,
    workflow,
)
from privfeat.cli.planning import budget, columns, plan, recipe, tan
from privfeat.cli.shared import estimators, options, terminal
from privfeat.exceptions import PrivacyWarning

__all__ = ["build_parser", "main"]

_OF_MODELS = (
    *(fit, train, predict, statement, audit, sanity),
    *(evaluate, report, export, workflow),
)
_OF_BUDGETS = (budget, columns, plan, tan, recipe, quickstart, doctor)
WAY_IN = """\
privfeat-extract --data IMAGES --model resnet50 --out features.h5  images to features
privfeat plan --n 10000 --d 2048 --classes 5 --epsilon 1           what to expect
privfeat fit --train features.h5 --estimator DPFC --epsilon 1 --out model
privfeat report model --out report.html                            a page about it
privfeat --help, privfeat VERB --help                              what else there is"""
ABOUT = """
Private classifiers on features of frozen networks. Begin with `plan`, then `fit`.
`privfeat VERB --help` says more. For example

    privfeat plan --n 10000 --d 2048 --classes 5 --epsilon 1
"""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all verbs; imports nothing heavy."""
    parser = argparse.ArgumentParser(prog="privfeat", **options.explained(ABOUT))
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument(
        "--debug", action="store_true", help="on failure, show the Python traceback"
    )
    about = "print what lets a shell (%(choices)s) complete verbs and options"
    shells = ("bash", "zsh", "tcsh", "fish")
    parser.add_argument("--completion", choices=shells, help=about)
    parser.set_defaults(run=show_the_way)
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    for module in _OF_MODELS + _OF_BUDGETS:
        module.add_parser(verbs)
    return parser


def run_command() -> None:
    """Run the command line, and end the process: the console script.

    After an interrupt it ends at once. Threads that compile still run then, and a
    process that waits for them may crash, with another status.
    """
    status = main()
    if status in terminal.INTERRUPTED:
        for stream in (sys.stdout, sys.stderr):  # of a pipe that may have gone
            with suppress(OSError, ValueError):
                print(end="", file=stream, flush=True)
        os._exit(status)
    # of several processes, however it is shortened, one waits for the others
    if not any("--distributed".startswith(w) and w[:4] == "--di" for w in sys.argv):
        atexit.register(_end_in_peace)
    sys.exit(status)


def _end_in_peace() -> None:
    """Let no signal end a process whose work is done, with another status."""
    for number in (signal.SIGINT, *terminal.ENDS):
        signal.signal(number, signal.SIG_IGN)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    try:
        args = build_parser().parse_args(argv)
    except KeyboardInterrupt as error:
        print("privfeat: interrupted.", file=STDERR)
        return terminal.status_of(error)
    with warnings.catch_warnings():
        warnings.simplefilter("always", PrivacyWarning)
        warnings.showwarning = lambda message, *rest: terminal.warn(one_line(message))
        try:
            with terminal.ended_by_signals():
                args.run(args)
            print(end="", flush=True)  # there may be no stdout
        except BrokenPipeError:  # the reader of a pipe has left, as in `| head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        except KeyboardInterrupt as error:
            notes = " ".join(getattr(error, "__notes__", ()))
            print(f"privfeat: interrupted. {notes}".rstrip(), file=STDERR)
            return terminal.status_of(error)
        # A user gets a sentence whatever went wrong; --debug has the rest before it.
        except Exception as error:  # noqa: BLE001 - each has its status
            if args.debug:
                traceback.print_exception(error)
            noted: list[str] = getattr(error, "__notes__", [])
            # of a charge, and of checkpoints; libraries add other notes
            ends = ("its budget is spent.", "charged again.", *terminal.COSTS)
            cost = [note for note in noted if note.endswith(ends)]
            told = estimators.as_options(describe(error), args)
            print("privfeat: error:", told, *cost, file=STDERR)
            return terminal.status_of(error)
    return 0


def show_the_way(args: argparse.Namespace) -> None:
    """Print what to type first, without a verb, or what a shell completes by."""
    if args.completion is None:
        print(WAY_IN)
        return
    import shtab  # 50 ms, which no other command needs

    print(shtab.complete(build_parser(), args.completion))


def describe(error: Exception) -> str:
    """Return what went wrong, without Python's decoration; a line for each column."""
    if isinstance(error, OSError) and error.filename and error.strerror:
        return one_line(f"{error.filename}: {error.strerror}")
    if isinstance(error, KeyError) and error.args:
        return one_line(error.args[0])  # str(error) would add quotation marks
    lines = str(error).splitlines()
    of_columns = all(line.startswith("column ") for line in lines)  # `values.Refusals`
    told = "\n".join(map(one_line, lines)) if of_columns else one_line(error)
    return told or type(error).__name__


def one_line(text: Any) -> str:
    """Return a text without line breaks."""
    return " ".join(str(text).split())
