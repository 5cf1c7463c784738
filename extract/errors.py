"""The one error that the command reports in a line, and how it prints lines."""

from textwrap import shorten

from privfeat._warnings import STDERR

# What libraries raise of a model that they cannot fetch or make.
OF_MODELS = (AttributeError, KeyError, OSError, RuntimeError, TypeError, ValueError)


class ExtractError(Exception):
    """Something that the user can put right; the message says what and how."""


def one_line(error: Exception, limit: int = 300) -> str:
    """Return the message of an error as one sentence, cut behind a word if long."""
    text = " ".join(str(error).split()) or type(error).__name__
    if len(text) <= limit:
        return text.rstrip(".") + "."
    return shorten(text, limit, placeholder=" ...") + "."


def say(text: str) -> None:
    """Print one line on stderr, to the person who started the command."""
    STDERR.write(f"privfeat-extract: {' '.join(text.split())}\n")
