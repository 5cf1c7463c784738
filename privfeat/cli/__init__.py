"""The command ``privfeat``: one module per verb, each with ``add_parser`` and ``run``.

Failures are one line on stderr: exit status 1, 2 for a wrong command line, or 3 for a
budget that has too little left; all statuses are in docs/reference/commands.md.
"""

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
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
from privfeat.cli.shared import estimators, terminal
from privfeat.exceptions import BudgetExceededError, PrivacyWarning

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
privfeat report model --out report                                 a page about it
privfeat --help, privfeat VERB --help                              what else there is"""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all verbs; imports nothing heavy."""
    parser = argparse.ArgumentParser(
        prog="privfeat",
        description="Private classifiers on features of frozen networks.",
        epilog="Begin with `plan`, then `fit`. `privfeat VERB --help` says more.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument(
        "--debug", action="store_true", help="on failure, show the Python traceback"
    )
    about = "print what lets a shell (%(choices)s) complete verbs and options"
    shells = ("bash", "zsh", "tcsh", "fish")
    parser.add_argument("--completion", action=Completion, choices=shells, help=about)
    parser.set_defaults(run=show_the_way)
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    for module in _OF_MODELS + _OF_BUDGETS:
        module.add_parser(verbs)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    args = build_parser().parse_args(argv)
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
            return 143 if isinstance(error, terminal.Terminated) else 130
        # A user gets one line whatever went wrong; --debug has the rest.
        except Exception as error:
            if args.debug:
                raise
            noted: list[str] = getattr(error, "__notes__", [])
            ends = ("its budget is spent.", terminal.NOTHING_CHARGED)
            cost = [note for note in noted if note.endswith(ends)]
            told = estimators.as_options(describe(error), args)
            print("privfeat: error:", told, *cost, file=STDERR)
            return 3 if isinstance(error, BudgetExceededError) else 1
    return 0


class Completion(argparse.Action):
    """Print what a shell reads, made from the parser, and exit."""

    def __call__(
        self, parser: argparse.ArgumentParser, _: Any, shell: Any, *rest: Any
    ) -> None:
        """Print the script of one shell."""
        import shtab  # 50 ms, which no other command needs

        print(shtab.complete(parser, shell))
        parser.exit()


def show_the_way(args: argparse.Namespace) -> None:
    """Print what to type first, for a command without a verb."""
    print(WAY_IN)


def describe(error: Exception) -> str:
    """Return what went wrong on one line, without Python's decoration."""
    if isinstance(error, OSError) and error.filename and error.strerror:
        return one_line(f"{error.filename}: {error.strerror}")
    if isinstance(error, KeyError) and error.args:
        return one_line(error.args[0])  # str(error) would add quotation marks
    return one_line(error) or type(error).__name__


def one_line(text: Any) -> str:
    """Return a text without line breaks."""
    return " ".join(str(text).split())
