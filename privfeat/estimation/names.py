"""Names of columns in parameters, compared with those of X."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def check_names(params: Mapping[str, Any], columns: Iterable[Any]) -> None:
    """Raise ValueError if a parameter has a column of X at another place than X.

    Parameters are taken by place: tables and columns of pandas, pairs of such, and
    fitted estimators, whose names are thereby those of X in its order.

    >>> import pandas as pd
    >>> center = pd.Series({"b": 0.5, "a": 0.0})
    >>> check_names({"center": center}, ["a", "b"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: center must have the columns of X in their order, got 'b' at place 0...
    """
    places = {name: place for place, name in enumerate(columns)}
    for param, value in params.items():
        for part in (value, *(value if isinstance(value, tuple | list) else ())):
            check_places(param, names_of(part), places, "columns of X")


def check_places(
    param: str, own: Iterable[Any], places: Mapping[Any, int], what: str
) -> None:
    """Raise ValueError if one of the parameter's ``own`` names has another place."""
    for place, name in enumerate(own):
        if isinstance(name, str) and places.get(name, place) != place:
            raise ValueError(
                f"{param} must have the {what} in their order, got {name!r} at place "
                f"{place} instead of {places[name]}: values are taken by place. Pass "
                "them in this order."
            )


def check_classes(param: str, table: Any, classes: Sequence[Any]) -> None:
    """Raise ValueError if a table of pandas has the classes in another order.

    As columns, or as the index of a column: values are taken by place. Other names,
    such as numbers of rows, say nothing.

    >>> import pandas as pd
    >>> rates = pd.Series(["no", "no", "yes"]).value_counts()
    >>> rates = rates[["yes", "no"]]
    >>> check_classes("rates", rates, ["no", "yes"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: rates must have the classes in their order, got them in another: ...
    """
    axis: Any = getattr(table, "columns", getattr(table, "index", None))
    own, known = (list(axis) if hasattr(axis, "__len__") else []), list(classes)
    if own != known and len(own) == len(known) and {*own} == {*known}:
        raise ValueError(
            f"{param} must have the classes in their order, got them in another: "
            f"values are taken by place. Pass them in the order of {known!r}."
        )


def check_own_order(param: str, value: Any, own: Any, classes: Sequence[Any]) -> None:
    """Raise ValueError if a list goes by the classes, and their order is another.

    ``own``, what ``classes=`` was given, may have another order, in which nothing is
    taken. What has the names of the classes is not taken by place.
    """
    named = hasattr(value, "coef_") or isinstance(value, Mapping)
    named = named or (hasattr(value, "iloc") and {*value.index} == {*classes})
    if own is None or isinstance(value, str) or named:
        return
    if list(own) != list(classes):
        raise ValueError(
            f"classes must be sorted beside {param} without names, whose values are "
            f"taken in that order, got {list(own)!r}. Pass {list(classes)!r}, or a "
            "mapping for class_weight, or a table of pandas with names for prior."
        )


def names_of(value: Any) -> list[Any]:
    """Return the names of columns of a fitted estimator, a table or a column."""
    for kind in ("feature_names_in_", "column_names", "columns", "index"):
        names: Any = getattr(value, kind, None)
        if hasattr(names, "__len__"):  # ``index`` of a list is a method
            return list(names)
    return []
