"""Verbs that run others."""

from argparse import ArgumentParser, Namespace
from typing import Any

from privfeat.cli.shared import options


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
