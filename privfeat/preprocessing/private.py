"""What private preprocessing has in common: parameters, one private fit, columns."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from privfeat._checks import check_choice, check_int
from privfeat._messages import check_columns
from privfeat._process import check_short_numbers
from privfeat._types import ARITHMETICS, Adjacency, Arithmetic
from privfeat.core.accounting.plan import Query, ReleasePlan
from privfeat.core.noise.gaussian_mechanism import GaussianMechanism
from privfeat.core.noise.keys import KeyStream
from privfeat.core.part_of_charge import PartOfCharge
from privfeat.core.private_fit import private_fit
from privfeat.core.sums.devices import check_devices
from privfeat.core.sums.processes import check_alone
from privfeat.core.sums.records import check_number
from privfeat.data import LazyFeatures
from privfeat.estimation.bases import PrivateEstimator, warn_of_extremes
from privfeat.estimation.fitting import fitted_apart
from privfeat.estimation.inputs import (
    check_users,
    checked,
    known_features,
    seed_of,
)
from privfeat.estimation.names import check_names
from privfeat.estimation.plans import plan_of

T = TypeVar("T", bound=type)
Floats = NDArray[np.float64]
# What docstrings have in common, by their placeholders.
_TEXTS = {
    "budget": """epsilon, delta : float
        As of `DPStandardScaler`, like all that follow.
    rho, noise_multiplier : float, optional
    adjacency : {"add_remove", "replace_one"}, default="add_remove"
    arithmetic : {"float64", "exact"}, default="float64"
    max_group_size : int, optional
    ledger : PrivacyLedger, optional
    random_state : None or int""",
    "attributes": """privacy_ : PrivacyStatement
    n_features_in_ : int
    feature_names_in_ : array of str
        If the columns have names.""",
    "unprotected": """\
**Not protected.** Timing; a seed that somebody guesses; the low bits of the noise
    with ``arithmetic="float64"``.""",
}


def document(cls: T) -> T:
    """Fill the shared parts into the placeholders of a class docstring."""
    cls.__doc__ = (cls.__doc__ or "").format(**_TEXTS)
    return cls


class PrivateStep(PrivateEstimator, ABC):
    """An estimator that learns by releases, and tells them beforehand (`planned`).

    A subclass says what it releases (`_queries`) and draws it (`_learn`).
    """

    rho: float | None = None
    noise_multiplier: float | None = None
    adjacency: Adjacency = "add_remove"
    arithmetic: Arithmetic = "float64"
    max_group_size: int | None = None

    # what a fit sets beside ``privacy_`` and the number and names of features
    _learned: ClassVar[tuple[str, ...]] = ()

    @fitted_apart
    def fit(
        self, X: Any, y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Self:
        """Release what is learned of the records.

        Parameters
        ----------
        X : array-like or LazyFeatures of shape (n_samples, n_features)
            One row per protected record, finite. Sensitive.
        y : array-like of shape (n_samples,), optional
            Labels, where they are what is learned of. Sensitive.
        groups : array-like of shape (n_samples,), optional
            The user that each record belongs to: integers only, or strings only. All
            records of a user are then protected together; needs ``max_group_size``.
            Sensitive.

        Returns
        -------
        self : object

        Raises
        ------
        TypeError, ValueError
            If a parameter is out of range, or the data has a wrong shape, NaN or
            infinity. Nothing has been released then.
        BudgetExceededError, LedgerError
            If ``ledger`` has too little left, or cannot be used. Nothing was charged.
        PrivacyError
            In several processes at once.
        """
        check_alone(type(self).__name__)
        keys = KeyStream(seed_of(self.random_state))
        records, n_records = self._records(X, y)
        check_number(n_records)
        n_features = getattr(self, "n_features_in_", 0)
        plan = self.planned(n_features)
        self._check_size(n_features)
        users = check_users(
            groups, self.max_group_size, n_records, X, y, ledger=self.ledger
        )
        check_devices(private=plan.private)
        check_short_numbers()
        fit = private_fit(
            self,
            plan,
            keys,
            public=self._public(),
            n_units=n_records if users is None else users.n_users,
            forget=self._learned,
            unit="record" if users is None else "user",
            arithmetic=self.arithmetic,
            classes_read=self._reads_classes(),
        )
        counted = np.ones(n_records, bool)
        if users is not None:
            counted = users.kept_records(keys.draw_integer())
        with fit.drawing() as mechanism:
            self._learn(mechanism, records, counted)
        return self

    def planned(self, n_features: int) -> ReleasePlan:
        """Return what ``fit`` would release, and its cost.

        Nothing is drawn or charged, and no record is needed.

        Parameters
        ----------
        n_features : int
            Number of columns: public.

        Raises
        ------
        TypeError, ValueError
            If ``fit`` would refuse a parameter, whatever the records.
        """
        check_choice("arithmetic", self.arithmetic, ARITHMETICS)
        queries = self._queries(n_features)
        if self.max_group_size is not None:
            check_int("max_group_size", self.max_group_size, low=1)
        return plan_of(self, queries, partial(self._grid_step, n_features))

    def check_targets(self, X: Any, y: Any, n_features: int) -> None:
        """Raise what ``fit`` would refuse of ``y``, if it reads it, and of sizes."""
        self._check_size(n_features)

    def _check_size(self, n_features: int) -> None:
        """Refuse, or warn of, more columns than this machine has room for."""

    @abstractmethod
    def _queries(self, n_features: int) -> list[Query]:
        """Return what a fit releases, for one record; refuse wrong parameters."""

    @abstractmethod
    def _grid_step(self, n_features: int, name: str) -> float:
        """Return the smallest grid step of the sums that a query releases."""

    @abstractmethod
    def _records(self, X: Any, y: Any) -> tuple[Any, int]:
        """Return what is learned of, checked, and the number of records."""

    @abstractmethod
    def _learn(
        self, mechanism: GaussianMechanism, records: Any, counted: NDArray[np.bool_]
    ) -> None:
        """Draw what is planned, of the records that count, and set what follows."""

    def _reads_classes(self) -> bool:
        """Return whether labels are read to find the classes."""
        return False

    def _facts(self) -> Sequence[str]:
        """Return what the guarantee assumes beside what it always does."""
        return [known_features(self), "that all values are finite"]

    def _public(self) -> tuple[str, ...]:
        """Return what the guarantee assumes to be known to everyone."""
        facts = [*self._facts(), "all constructor parameters but random_state"]
        if (most := self.max_group_size) is not None:
            facts.append(f"that of a user's records at most {most} count")
        if self.adjacency == "replace_one":
            facts.append(f"the number of {'records' if most is None else 'users'}")
        return tuple(facts)


class PrivateTransformer(TransformerMixin, PrivateStep):
    """A `PrivateStep` that makes features of the columns of ``X``."""

    def n_outputs(self, n_features: int) -> int:
        """Return how many columns ``transform`` makes of so many: public."""
        return n_features

    def _records(self, X: Any, y: Any) -> tuple[NDArray[Any], int]:
        rows = self._rows(X, reset=True)
        if not isinstance(self.ledger, PartOfCharge):  # a pipeline has warned before
            self.warn_of_records(rows)
        return rows, len(rows)

    def warn_of_records(self, rows: NDArray[Any]) -> None:
        """Warn if ``bounds`` look as if they were taken from these rows."""
        if (bounds := getattr(self, "bounds", None)) is not None:
            low, high = column_bounds(bounds, rows.shape[1])
            if len(low) == 1 or np.ptp(low) or np.ptp(high):  # no range for all columns
                warn_of_extremes("bounds", low, high, rows)

    def _rows(self, X: Any, *, reset: bool) -> Floats:
        """Return finite rows as float64."""
        if not reset:
            check_is_fitted(self, self._learned[0])
        if isinstance(X, LazyFeatures):
            X = X[:]
        check_columns(X=X)
        rows: Floats = checked(validate_data, self, X, dtype=np.float64, reset=reset)
        check_names(self.get_params(deep=False), getattr(self, "feature_names_in_", ()))
        return rows

    def _outputs(self, X: Any, width: int) -> Floats:
        """Return rows of what ``transform`` made, for its inverse."""
        check_is_fitted(self, self._learned[0])
        rows: Floats = checked(check_array, X, dtype=np.float64)
        if rows.shape[1] != width:
            raise ValueError(
                f"X must have the {width} columns of transform, got {rows.shape[1]}."
            )
        return rows

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that outputs are of float64."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags


def column_bounds(bounds: Any, n_features: int) -> tuple[Floats, Floats]:
    """Return the least and the greatest value of each column, (n_features,) each.

    TypeError or ValueError if ``bounds`` is not a pair of numbers, or of one number for
    each column.
    """
    try:
        if not isinstance(bounds, list | tuple | np.ndarray):  # the keys of a mapping
            raise TypeError("no pair")
        if any(np.asarray(end).dtype.kind in "USb" for end in bounds):
            raise TypeError("no numbers")
        low, high = (
            np.broadcast_to(np.asarray(end, np.float64), (n_features,))
            for end in bounds
        )
    except (TypeError, ValueError) as error:
        raise ValueError(
            "bounds must be (lowest, highest) value, known to everyone: two numbers, "
            f"or two lists of one number for each of the {n_features} columns."
        ) from error
    widths = high - low
    if not (np.all(np.abs(low) <= 1e100) and np.all(np.abs(high) <= 1e100)):
        raise ValueError("bounds must be finite, and at most 1e100 in absolute value.")
    if not np.all(widths > 1e-100):
        raise ValueError(
            "bounds must rise: the lowest values of all columns first, then the "
            "highest, such as ([0, 18], [1, 100])."
        )
    return low, high


def placed(X: Floats, low: Floats, high: Floats) -> Floats:
    """Return values cut to their bounds, which become -1 and 1."""
    middle, half = (low + high) / 2.0, (high - low) / 2.0
    return np.clip((np.clip(X, low, high) - middle) / half, -1.0, 1.0)
