"""Which steps a private pipeline takes, and what to use in the place of others."""

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

from sklearn.base import clone
from sklearn.feature_selection import SelectorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from privfeat._types import SET_BY_PIPELINE
from privfeat.core.callers.stateless import is_exactly, is_stateless
from privfeat.exceptions import UnsupportedEventError
from privfeat.preprocessing import PublicColumns

# They learn in `fit`, and then make of each row what that row alone decides.
_ONCE_FITTED = {
    "sklearn.preprocessing": {
        "MaxAbsScaler",
        "MinMaxScaler",
        "RobustScaler",
        "StandardScaler",
    },
}
# They take tables and texts; others that may get all rows at once take numbers.
_TAKE_RECORDS = ("HashingVectorizer", "PublicColumns")
_CATEGORIES = "Pass PublicColumns, which has columns of given categories"
_MISSING = "Pass PublicColumns, which fills in public constants"
_COMPONENTS = "Pass DPPCA"
_INSTEAD = {
    "StandardScaler": "Pass DPStandardScaler, or PublicColumns for public bounds",
    **dict.fromkeys(
        ("MaxAbsScaler", "MinMaxScaler", "RobustScaler", "PowerTransformer"),
        "Pass PublicColumns for public bounds, or DPStandardScaler",
    ),
    **dict.fromkeys(("OneHotEncoder", "OrdinalEncoder", "TargetEncoder"), _CATEGORIES),
    **dict.fromkeys(("SimpleImputer", "KNNImputer", "IterativeImputer"), _MISSING),
    **dict.fromkeys(("PCA", "IncrementalPCA", "KernelPCA", "FastICA"), _COMPONENTS),
    **dict.fromkeys(("TruncatedSVD", "NMF", "FactorAnalysis"), _COMPONENTS),
    **dict.fromkeys(
        ("QuantileTransformer", "KBinsDiscretizer", "SplineTransformer"),
        "Pass DPQuantiles, or PublicColumns for public bounds",
    ),
    **dict.fromkeys(
        ("CountVectorizer", "TfidfVectorizer", "TfidfTransformer", "DictVectorizer"),
        "Pass HashingVectorizer, which needs no list of words",
    ),
    "FeatureHasher": "Pass PublicColumns, or HashingVectorizer for texts",
    "FunctionTransformer": "Pass a ufunc of NumPy, which takes one number by itself",
    **dict.fromkeys(
        ("ColumnTransformer", "FeatureUnion", "Pipeline", "PrivatePipeline"),
        "Pass PublicColumns for all columns of a table, and its parts as steps",
    ),
}
_DECLARED = (
    "or one that was fitted on public data, in sklearn.frozen.FrozenEstimator, which "
    "declares it public"
)


@dataclass(frozen=True)
class Step:
    """A step of a pipeline, cloned."""

    name: str
    estimator: Any
    private: bool  # whether it learns from records, for a part of the budget
    record_wise: bool  # whether it is public, and may be given all rows at once

    @property
    def inner(self) -> Any:
        """What it is, or what its user declared public."""
        return self.estimator.estimator if self.declared else self.estimator

    @property
    def takes_numbers(self) -> bool:
        """Whether it is public, and gets all rows at once, as finite float64."""
        return self.record_wise and type(self.inner).__name__ not in _TAKE_RECORDS

    @property
    def reads_tables(self) -> bool:
        """Whether it takes rows as they are: texts, names and gaps among them."""
        return not (self.private or self.takes_numbers)

    @property
    def declared(self) -> bool:
        """Whether its user declared it public."""
        return isinstance(self.estimator, FrozenEstimator)


def read_steps(steps: Any) -> list[Step]:
    """Return the steps of a pipeline, cloned, if each is private or public.

    TypeError for a step that would learn from the records unaccounted; the message
    names it and what to pass instead. ValueError if names are no names, or a private
    step was given a budget.
    """
    if not isinstance(steps, Sequence) or not all(
        isinstance(one, tuple) and len(one) == 2 for one in steps
    ):
        raise TypeError(
            "steps must be a list of (name, estimator), got "
            f"{type(steps).__name__}. Pass it as scikit-learn's Pipeline takes it."
        )
    names = [name for name, _ in steps]
    known = {"steps", "shares", *SET_BY_PIPELINE}
    if len({*names}) < len(names) or not all(
        isinstance(n, str) and n and "__" not in n and "." not in n and n not in known
        for n in names
    ):
        raise ValueError(
            "names of steps must be different texts without '__' and '.', and no "
            f"parameter of the pipeline, got {names}. Rename them."
        )
    read = [_read(name, estimator) for name, estimator in steps]
    if not any(step.private for step in read):
        raise ValueError(
            f"steps must hold a private estimator, got {names}. Without one there is "
            "nothing to protect: use scikit-learn's Pipeline."
        )
    first = next(place for place, step in enumerate(read) if step.private)
    for step in read[first:]:
        if type(step.estimator).__name__ in _TAKE_RECORDS:
            raise TypeError(
                f"step {step.name!r} must take numbers, since a private step is before "
                f"it, got {type(step.estimator).__name__}. Put it first."
            )
    for step in read[:-1]:
        if not hasattr(step.estimator, "transform"):
            raise TypeError(
                f"step {step.name!r} must have transform, got "
                f"{type(step.estimator).__name__}. Put it last."
            )
    return read


def _read(name: str, given: Any) -> Step:
    """Return a step that is private or public; raise TypeError for any other."""
    kind = type(given).__name__
    if not hasattr(given, "get_params") or isinstance(given, type):
        raise TypeError(
            f"step {name!r} must be an estimator, got {kind}. Leave it out."
        )
    if isinstance(given, FrozenEstimator):
        check_is_fitted(given)
        own = FrozenEstimator(given.estimator)  # which nobody else can change now
        return Step(name, own, False, _is_record_wise(given))
    if is_stateless(given):
        return Step(name, clone(given), private=False, record_wise=True)
    if _is_private(given) and kind not in _INSTEAD:
        if not hasattr(given, "planned") or hasattr(given, "model"):
            raise UnsupportedEventError(
                f"step {name!r} must tell its plan before it reads records and sample "
                f"none, got {kind}. Pass a linear estimator."
            )
        _check_own_budget(name, given)
        return Step(name, clone(given), private=True, record_wise=False)
    instead = _INSTEAD.get(kind)
    if instead is None and isinstance(given, SelectorMixin):
        instead = "Leave features out by public knowledge, pass DPPCA"
    raise TypeError(
        f"step {name!r} must be private or public, got {kind}, which may learn from "
        f"the records, and nothing accounts for it. {instead or 'Leave it out'}, "
        f"{_DECLARED}."
    )


def fitted_steps(named: Sequence[tuple[str, Any]]) -> list[Step]:
    """Return the steps of a fitted pipeline."""
    return [
        Step(name, fitted, _is_private(fitted), _is_record_wise(fitted))
        for name, fitted in named
    ]


def _is_record_wise(step: Any) -> bool:
    inner = step.estimator if isinstance(step, FrozenEstimator) else step
    return is_stateless(inner) or is_exactly(inner, _ONCE_FITTED)


def _is_private(given: Any) -> bool:
    """Return whether it is an estimator of privfeat that learns, and no subclass."""
    ours = type(given).__module__.startswith("privfeat.")
    return ours and hasattr(given, "fit") and type(given) is not PublicColumns


def _check_own_budget(name: str, given: Any) -> None:
    """Refuse a budget of a step: it gets its part of that of the pipeline."""
    defaults = signature(type(given)).parameters
    for parameter, value in given.get_params(deep=False).items():
        if parameter not in SET_BY_PIPELINE:
            continue
        default = defaults[parameter].default
        if not (value is default or value == default):
            raise ValueError(
                f"{parameter} must not be set in step {name!r}, which gets a part of "
                f"the pipeline's budget. Pass {parameter} to the pipeline"
                + (", or shares." if parameter in ("epsilon", "rho") else ".")
            )
