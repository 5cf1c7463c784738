"""Parameters of estimators: declared once, as annotated attributes of the class."""

from dataclasses import dataclass, field
from typing import Any, dataclass_transform

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone

from privfeat._types import STAYS_AT_HOME
from privfeat._warnings import warn


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
class Parameters(BaseEstimator):
    """An estimator whose constructor takes what its classes declare.

    An annotated attribute of a class is a parameter, by keyword, with that default: its
    own and those that it inherits. One that is ``= field(kw_only=False)`` has no
    default, and may be given by its place. Values are stored as they are given, and
    checked by ``fit``, as scikit-learn wants it. Annotate anything else as
    `typing.ClassVar`.

    >>> class Shrinking(Parameters):
    ...     shrinkage: float = 0.5
    >>> Shrinking(shrinkage=0.1)
    Shrinking(shrinkage=0.1)
    """

    def __init_subclass__(cls, **options: Any) -> None:
        """Make the constructor; here, so that no class can forget to ask for it."""
        super().__init_subclass__(**options)
        dataclass(kw_only=True, eq=False, repr=False)(cls)


def described(estimator: Any) -> str:
    """Return how an estimator was made, without what stays at home.

    >>> from privfeat import DPFC
    >>> described(DPFC(epsilon=2.0, random_state=7))
    'DPFC(epsilon=2.0)'
    """
    params = estimator.get_params()
    shown = clone(estimator).set_params(
        **{name: None for name in STAYS_AT_HOME if name in params}
    )
    return repr(shown)


def warn_of_extremes(
    name: str, low: ArrayLike, high: ArrayLike, values: NDArray[np.float64]
) -> None:
    """Warn if bounds look as if they were taken from the records.

    Many records reach both ends of a scale such as 1 to 5, but one in a hundred at most
    its least and its greatest value elsewhere. Bounds of columns warn if all are the
    ends of their column, and few records reach those of one column at least. The answer
    depends on the records: it goes to stderr of their owner, and into no statement or
    model.
    """
    if not len(values):
        return
    few = max(1, len(values) // 100)
    ends = values.min(axis=0), values.max(axis=0)
    if np.any(low != ends[0]) or np.any(high != ends[1]):
        return
    at_ends = [np.sum(values == end, axis=0) <= few for end in ends]
    if not np.any(np.logical_and(*at_ends)):
        return
    warn(
        f"{name} should be known without the records, got the least and the greatest "
        "of their values: bounds are public, and are saved with the model. Pass the "
        "range of the quantity, as a code book or the unit has it."
    )
