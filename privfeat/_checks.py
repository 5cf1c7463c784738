"""The one place where parameters are checked and refusals are worded.

Every message says *name, rule, value, remedy*. Comparisons are written so that NaN
fails them, and booleans are not numbers. Values of data never enter a message.
"""

import math
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from importlib.util import find_spec
from inspect import signature
from numbers import Integral, Real
from typing import Any, TypeVar, cast

from privfeat._messages import without_data

T = TypeVar("T", bound=str)


def check_real(
    name: str,
    value: Any,
    *,
    low: float,
    high: float = math.inf,
    include_low: bool = True,
    include_high: bool = True,
    remedy: str = "",
) -> float:
    """Return ``value`` as a float if it lies in the stated interval.

    TypeError if it is not a real number, or is a boolean; ValueError if it is NaN or
    lies outside the interval.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(
            _sentence(f"{name} must be a real number, got {value!r}.", remedy)
        )
    try:
        number = float(value)
    except OverflowError:
        number = math.nan  # beyond all rules
    above = number >= low if include_low else number > low
    below = number <= high if include_high else number < high
    if not (above and below):
        left, right = "[" if include_low else "(", "]" if include_high else ")"
        if math.isinf(high):
            rule = f"{'>=' if include_low else '>'} {low:g}"
            rule = rule if include_high else f"finite and {rule}"
        else:
            rule = f"in {left}{low:g}, {high:g}{right}"
        raise ValueError(_sentence(f"{name} must be {rule}, got {value!r}.", remedy))
    return number


def check_positive(name: str, value: Any, *, remedy: str = "") -> float:
    """Return ``value`` as a float if it is finite and greater than zero."""
    return check_real(
        name, value, low=0.0, include_low=False, include_high=False, remedy=remedy
    )


def check_between(name: str, value: Any, low: float, high: float) -> float:
    """Return ``value`` as a float if it is in the open interval of both ends."""
    return check_real(
        name, value, low=low, high=high, include_low=False, include_high=False
    )


def check_int(name: str, value: Any, *, low: int, high: int = 2**31 - 1) -> int:
    """Return ``value`` as an int if it is a whole number in ``[low, high]``."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, got {value!r}.")
    if not low <= int(value) <= high:
        raise ValueError(f"{name} must be in [{low}, {high}], got {value!r}.")
    return int(value)


def check_choice(name: str, value: Any, choices: Collection[T]) -> T:
    """Return ``value`` if it is one of the strings ``choices``."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, got {value!r}.")
    if value not in choices:
        options = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {options}, got {value!r}.")
    return cast(T, value)


def check_bool(name: str, value: Any) -> bool:
    """Return ``value`` if it is a Boolean."""
    if type(value).__name__ not in {"bool", "bool_", "numpy.bool"}:
        raise TypeError(f"{name} must be True or False, got {value!r}.")
    return bool(value)


def check_called(name: str, value: Any, *arguments: str) -> None:
    """Raise TypeError unless ``value`` can be called with these, by its signature.

    It is not called: what has no signature, as some that is built in, passes.
    """
    try:
        if not callable(value):
            raise TypeError("not callable")
        with suppress(ValueError):  # no signature
            signature(value).bind(*arguments)
    except TypeError as error:
        raise TypeError(
            f"{name} must be callable as {name}({', '.join(arguments)}), got "
            f"{type(value).__name__}: {error}. Pass a function of these."
        ) from error


def check_class_names(names: Any, n_classes: int | None = None) -> list[str]:
    """Return names of classes as a list.

    TypeError for what has no order, or another one than that of the classes, such as
    the keys of a mapping; ValueError if there is not one for each class.

    >>> check_class_names({"ill": 1, "well": 0})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    TypeError: class_names must be a list, a tuple or an array of names, got dict. ...
    """
    listed = isinstance(names, Sequence) and not isinstance(names, str | bytes)
    array = type(names).__module__ == "numpy" and getattr(names, "ndim", 0) == 1
    if not (listed or array):
        raise TypeError(
            "class_names must be a list, a tuple or an array of names, got "
            f"{type(names).__name__}. Pass one name for each class, in the order of "
            "the classes."
        )
    if n_classes is not None and len(names) != n_classes:
        raise ValueError(
            f"class_names must have {n_classes} entries, got {len(names)}."
        )
    return [str(name) for name in names]


def optional(check: Callable[[str, Any], object]) -> Callable[[str, Any], object]:
    """Return the check of a parameter that may be None."""
    return lambda name, value: None if value is None else check(name, value)


def _sentence(message: str, remedy: str) -> str:
    return f"{message} {remedy}" if remedy else message


def require(purpose: str, package: str, *, extra: str) -> None:
    """Raise ImportError unless a package of an extra is installed.

    ``purpose``, which needs it, is the beginning of a sentence.

    >>> require("a figure", "no_such_package", extra="plot")
    Traceback (most recent call last):
    ImportError: a figure needs no_such_package. Run pip install 'privfeat[plot]'.
    """
    if find_spec(package) is None:
        raise ImportError(
            f"{purpose} needs {package}. Run pip install 'privfeat[{extra}]'.",
            name=package,
        )


def check_order(name: str, values: Any, *given: Any) -> None:
    """Raise ValueError if values of pandas have the index of X or y in another order.

    ``values`` are one for each row, such as labels or users. Of an estimator, ``given``
    are also the rows that scikit-learn was given, of which it made an array
    (`core.callers.stack`).
    """
    if not hasattr(type(values), "index"):  # an array
        return
    for rows in given:
        if without_data(_stand_in_another_order, values, rows):
            raise ValueError(
                f"{name} must have the index of X and y in its order, got it in "
                f"another: values are taken by place. Pass {name}.loc[X.index] or, "
                "where its labels repeat, both from one table; if it is in the order "
                f"of X, under new labels, {name}.to_numpy()."
            )


def _stand_in_another_order(values: Any, X: Any) -> bool:
    """Return whether both are of pandas, with the same index in another order."""
    mine: Any = getattr(values, "index", None)
    others: Any = getattr(X, "index", None)
    if not (hasattr(mine, "equals") and hasattr(others, "equals")):
        return False
    if len(mine) != len(others) or mine.equals(others):
        return False
    # by value: of one index the type may be nullable, and of the other not
    if mine.astype(object).equals(others.astype(object)):
        return False
    # labels may repeat: a table by patient, or two files put together
    counts, as_often = (i.value_counts(dropna=False) for i in (mine, others))
    found = counts.reindex(as_often.index, fill_value=0)
    return bool(found.tolist() == as_often.tolist())
