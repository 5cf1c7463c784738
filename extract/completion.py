"""What lets a shell complete options: ``privfeat-extract --completion``."""

from argparse import ArgumentParser

from .overlap import overlap_parser
from .values import path_argument


def completion(parser: ArgumentParser, shell: str) -> str:
    """Return what a shell reads: options, choices, and files where paths are due.

    ``parser``, of ``privfeat-extract``, gets its second verb, and parses no more after.
    """
    import shtab  # which no other command needs

    overlap = overlap_parser()
    for one in (parser, overlap):
        for action in one._actions:
            if action.type is path_argument or action.dest == "data":
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    about = "find near-duplicates between two feature files"
    verbs.add_parser("overlap", parents=[overlap], add_help=False, help=about)
    text: str = shtab.complete(parser, shell)
    return text
