"""Tables as the command line names them: a file, and what is declared of it."""

from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privfeat.cli.shared.terminal import CommandError, warn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from privfeat.preprocessing.declaration import Column


# Kinds of a target that a regressor predicts.
_NUMBERS = ("numeric", "integer")
_NO_TARGET = "Leave rows without a value out of the table."


@dataclass(frozen=True)
class Declared:
    """What is publicly known of a table."""

    # the declaration of `privfeat.preprocessing.PublicColumns`, also of the target
    columns: dict[str, dict[str, Any]]
    target: str | None  # the column of the classes, or of the numbers to predict
    users: str | None = None  # the column of the users of rows
    strict: bool = True  # a table may have no other columns

    @property
    def features(self) -> tuple["Column", ...]:
        """The columns that a model learns from."""
        from privfeat.preprocessing.declaration import parse_columns

        apart = (self.target, self.users)
        return parse_columns(
            {name: said for name, said in self.columns.items() if name not in apart}
        )

    @property
    def n_features(self) -> int:
        """The number of features that these become."""
        return sum(len(column.outputs) for column in self.features)

    @property
    def settings(self) -> dict[str, Any]:
        """Parameters of estimators that suit columns better than those for features."""
        from privfeat.preprocessing.public_columns import clip_norm_of

        norm = min(max(clip_norm_of(self.features), 1e-6), 1e6)
        return {"row_scaling": "clip", "clip_norm": norm}

    @property
    def feature_bounds(self) -> tuple[list[float], list[float]]:
        """Least and largest value that each feature can have."""
        found: list[tuple[float, float]] = []
        for column in self.features:
            own = (-1.0, 1.0) if column.treatment != "raw" else column.bounds
            ends = [(0.0, 1.0)] * len(column.outputs)
            if column.outputs and not column.categories:
                ends[0] = own
            found += ends
        low, high = zip(*found, strict=True)
        return list(low), list(high)

    @property
    def class_names(self) -> list[str] | None:
        """The classes, in the order of their numbers; None of a target of numbers."""
        target = self._target
        if target.kind in _NUMBERS:
            return None
        return list(target.categories) or ["false", "true"]

    @property
    def target_bounds(self) -> tuple[float, float] | None:
        """Least and largest target, where it is a number; None of classes."""
        target = self._target
        return target.bounds if target.kind in _NUMBERS else None

    @property
    def _target(self) -> "Column":
        """Return the column of the target; CommandError if values may be missing."""
        from privfeat.preprocessing.declaration import NO_CATEGORY, parse_columns

        name = self.target
        if name is None:
            raise CommandError(
                "a table needs --target, the column of the classes, or of the numbers "
                "to predict."
            )
        if name not in self.columns:
            known = ", ".join(map(repr, self.columns))
            raise CommandError(
                f"--target must be declared in --columns ({known}), got {name!r}."
            )
        declared = {name: self.columns[name]}
        if declared[name].get("kind") not in ("category", "boolean", *_NUMBERS):
            raise CommandError(
                f"column {name!r} of --target must be declared a category or boolean, "
                "or, for a regressor, numeric or integer: what is known to be "
                "possible, not what the data have."
            )
        (target,) = parse_columns(declared)
        kept = target.missing in ("refuse", "fill") and target.unseen != NO_CATEGORY
        if not kept:
            raise CommandError(
                f"column {name!r} of --target must have a value in each row: declare "
                "missing and unseen as refuse, or as one that it may have. "
                f"{_NO_TARGET}"
            )
        return target

    @property
    def saved(self) -> dict[str, Any]:
        """What a model keeps of it: all public. It learns nothing of the users."""
        ignored = {} if self.users is None else {self.users: {"kind": "ignored"}}
        return {"columns": self.columns | ignored, "target": self.target}

    def read(self, path: str, *, labelled: bool = True) -> "TableRows":
        """Return the rows of a table, a file that `privfeat.data.tables` reads.

        ``labelled``: with the columns of the target and the users. CommandError,
        TypeError or ValueError if columns are missing, or values are none that are
        declared. No message holds a value.
        """
        import numpy as np

        from privfeat.data.tables.files import read_schema, table_parts
        from privfeat.preprocessing.public_columns import check_names, features_of
        from privfeat.preprocessing.values import Refusals, numbers_of

        features, class_names = self.features, self.class_names if labelled else None
        target = self._target if labelled else None
        users = self.users if labelled else None
        names = list(read_schema(path))
        apart = [name for name in (self.target, self.users) if name is not None]
        lost = next((name for name in apart if labelled and name not in names), None)
        if lost is not None:
            raise CommandError(f"{path} must have a column {lost!r}, got none.")
        others = [name for name in names if name not in apart]
        check_names(others, features, strict=self.strict)
        wanted = [column.name for column in features if column.outputs]
        wanted += apart if labelled else []
        X, y, groups = [], [], []
        refusals = Refusals()
        for part in table_parts(path, wanted):
            with refusals.kept():
                X.append(features_of(features, part))
            if target is not None:
                with refusals.kept():
                    found = numbers_of(target, part[target.name], _NO_TARGET)[0]
                    y.append(found if class_names is None else found.astype(np.int64))
            if users is not None:
                groups.append(part[users])
        refusals.raised()
        if not sum(map(len, X)):
            raise CommandError(f"{path} must have at least 1 row, got none.")
        return TableRows(
            path=path,
            X=np.vstack(X),
            y=np.concatenate(y) if y else None,
            groups=_users(users, groups),
            class_names=class_names,
        )


@dataclass(frozen=True, eq=False)
class TableRows:
    """The rows of a table, as features and classes: as `FeatureSplit` has a file's."""

    path: str
    X: "NDArray[np.float64]"  # (n_samples, n_features)
    y: Any  # number of each row's class, or its target as float64; or None
    groups: Any  # the user of each row; or None
    class_names: list[str] | None


def _users(name: str | None, parts: list[Any]) -> Any:
    """Return the users of all rows; CommandError if one has none."""
    import numpy as np

    if name is None:
        return None
    from privfeat.data.users import named

    try:
        return named(np.concatenate(parts))
    except ValueError as error:  # its message holds no value
        raise CommandError(f"column {name!r} of --users: {error}") from None


def declared_by(args: Namespace) -> Declared | None:
    """Return what ``--columns``, ``--target`` and ``--users`` declare, if they do."""
    target, users = getattr(args, "target", None), getattr(args, "users", None)
    if args.columns is None:
        given = "--target" if target is not None else "--users"
        if target is not None or users is not None:
            raise CommandError(
                f"{given} must be given together with --columns, which declares the "
                "columns of a table."
            )
        return None
    from privfeat.preprocessing import read_columns
    from privfeat.preprocessing.public_columns import find_unequal

    found = Declared(read_columns(args.columns), target, users)
    _ = found.class_names  # raises of a target that is none
    if (sentence := find_unequal(found.features)) is not None:
        warn(sentence)
    if users is not None and users == target:
        raise CommandError("--users must be another column than --target.")
    return found


def declared_of(model: str, users: str | None = None) -> Declared | None:
    """Return what a saved model knows of the tables that it was fitted to.

    ``users``: the column of the users of other rows, which it does not know.
    """
    from privfeat.persistence import load_table

    table = load_table(model)
    if table is None and users is not None:
        raise CommandError("--users is for models of a table. Pass --groups.")
    if table is None:
        return None
    return Declared(table["columns"], table["target"], users, strict=False)


def column_of(path: str, option: str, name: str) -> list[Any]:
    """Return the values of one column of a table, as they stand."""
    from privfeat.data.tables.files import read_schema, table_parts

    if name not in read_schema(path):
        raise CommandError(
            f"{option} must be a column of {path}, got {name!r}. Name one that it has."
        )
    parts = table_parts(path, [name], exact=True)
    return [value for part in parts for value in part[name].tolist()]


def add_columns(parser: ArgumentParser, *, users: bool = True) -> None:
    """Add ``--columns``, ``--target`` and, unless told otherwise, ``--users``."""
    add = parser.add_argument_group("tables").add_argument
    what = (
        "the rows are of a table (.csv, .npz, .parquet, .arrow), whose columns this "
        "file declares; `privfeat columns` drafts it"
    )
    add("--columns", metavar="FILE.toml", help=what)
    which = "with --columns: the column of the classes, or of numbers to predict"
    add("--target", metavar="COLUMN", help=which)
    whose = "with --columns: protect all rows of a user together, by this column"
    if users:
        add("--users", metavar="COLUMN", help=whose)
