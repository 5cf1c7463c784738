"""What a command says to the person who started it."""

from argparse import Namespace

from privfeat._warnings import STDERR


class CommandError(Exception):
    """A command cannot do what was asked; the message says why."""


def shows_progress(args: Namespace) -> bool:
    """Return whether to show progress: on a terminal, without ``--quiet``."""
    return STDERR.isatty() and not args.quiet


def progress(args: Namespace, text: str) -> None:
    """Print what is being done, if progress is shown."""
    if shows_progress(args):
        print(text, file=STDERR, flush=True)


def warn(sentence: str) -> None:
    """Print a warning to the person who started the command."""
    print(f"privfeat: warning: {sentence}", file=STDERR)
