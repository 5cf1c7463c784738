"""Parameters of estimators: declared once, as annotated attributes of the class."""

from dataclasses import dataclass, field
from typing import Any, dataclass_transform

from sklearn.base import BaseEstimator, clone

from privfeat._types import STAYS_AT_HOME


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
class Parameters(BaseEstimator):
    """An estimator whose constructor takes what its classes declare.

    An annotated attribute of a class is a parameter, by keyword, with that default:
    its own and those that it inherits. One that is ``= field(kw_only=False)`` has no
    default, and may be given by its place. Values are stored as they are given, and
    checked by ``fit``, as scikit-learn wants it. Annotate anything else as
    `typing.ClassVar`.

    Examples
    --------
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
