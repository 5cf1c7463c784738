"""Parameters of estimators: declared once, as annotated attributes of the class."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, dataclass_transform, runtime_checkable

from sklearn.base import BaseEstimator, clone

from privfeat._types import STAYS_AT_HOME

if TYPE_CHECKING:
    from privfeat.core.accounting.plan import ReleasePlan


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


@runtime_checkable
class PlansReleases(Protocol):
    """A private step of a pipeline: it plans its releases before it sees a record.

    ``fit`` calls `planned` with the number of features it is given. What a plan depends
    on besides is public: the parameters.
    """

    def planned(self, n_features: int) -> "ReleasePlan":
        """Return what ``fit`` would release, and its cost; nothing is drawn."""
        ...

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, the budget among them."""
        ...

    def set_params(self, **params: Any) -> Any:
        """Set parameters, the budget among them."""
        ...


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
