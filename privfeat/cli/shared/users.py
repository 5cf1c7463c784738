"""The users of the rows of a file, as the command line names them."""

import warnings
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from privfeat.cli.shared.tables import TableRows
from privfeat.cli.shared.terminal import CommandError
from privfeat.exceptions import PrivacyWarning

if TYPE_CHECKING:
    from privfeat.data import FeatureSplit


def users_of(
    args: Namespace,
    split: "FeatureSplit | TableRows | list[str]",
    argument: str,
    max_group_size: int | None,
) -> Any:
    """Return the user of each row, or image file, if users are to be protected."""
    if isinstance(split, list):
        return _users_of_images(args, split, argument)
    if isinstance(args.groups, str):
        raise CommandError(
            f"--groups must have no FILE.csv, which is for folders of images, got "
            f"{args.groups!r}. A feature file holds groups, and a table has --users."
        )
    if isinstance(split, TableRows):
        if args.groups is not None:
            raise CommandError(
                "--groups and --no-groups are for feature files. Name the column of "
                "users by --users, or protect each row on its own without it."
            )
        if split.groups is None and max_group_size is not None:
            raise CommandError(
                "--max-group-size must be given together with --users, the column that "
                "says whose each row is."
            )
        if split.groups is not None:
            _check_size(max_group_size, "--users")
        return split.groups
    if args.groups and not split.X.has_groups:
        raise CommandError(
            f"{argument} must hold groups for --groups. Extract it with "
            "privfeat-extract --groups, or write it with privfeat.data.write_features."
        )
    if args.groups is None and split.X.has_groups:
        raise CommandError(
            f"{argument} names the user of each row. Pass --groups and "
            "--max-group-size to protect all rows of a user together, or --no-groups "
            "to protect each row on its own."
        )
    if args.groups:
        _check_size(max_group_size, "--groups")
        return split.groups
    # --no-groups is an answer to this warning
    warnings.filterwarnings("ignore", "X is of a file that says", PrivacyWarning)
    return None


def _users_of_images(args: Namespace, names: list[str], argument: str) -> Any:
    """Return the users that a table names for images, None without ``--groups``."""
    from privfeat.data.users import read_users

    if args.groups is True or args.users is not None:
        raise CommandError(
            f"--groups must name a FILE.csv for a folder of images, got {argument!r}: "
            "a folder names no users. Its columns are file (test/cat/1.png) and user."
        )
    if not args.groups:
        return None
    _check_size(args.max_group_size, "--groups")
    return read_users(args.groups, names)


def _check_size(max_group_size: int | None, option: str) -> None:
    if max_group_size is None:
        raise CommandError(
            f"{option} must be given together with --max-group-size, got it alone. "
            "Pass the number of rows of a user that shall count, chosen without "
            "looking at the rows."
        )
