"""Which steps learn nothing: each row alone decides what it becomes.

By the exact class: a subclass has the methods, and the tags, of a user.

The types of columns follow from all records: one half makes a column of whole numbers
one of floats. So a step must make the same of whole numbers as of equal floats, and
columns of several types must meet in float64. Which floats an array holds is the choice
of who stores it.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

# They compute each entry of a row from that row alone, round it alike in calls of any
# size, and learn nothing in `fit`.
_STATELESS = {
    "sklearn.preprocessing": {
        *("Binarizer", "FunctionTransformer", "Normalizer", "PolynomialFeatures"),
    },
    "sklearn.feature_extraction": {"FeatureHasher", "HashingVectorizer"},
    "privfeat": {"PublicColumns"},
}

# Frozen, they make numbers of one type of whole numbers, floats and texts.
_MAKE_FLOATS = {
    "sklearn.preprocessing": {
        *("MaxAbsScaler", "MinMaxScaler", "OneHotEncoder", "OrdinalEncoder"),
        *("PowerTransformer", "QuantileTransformer", "RobustScaler", "StandardScaler"),
    },
    "sklearn.decomposition": {"PCA", "TruncatedSVD"},
}

# They learn what their parts learn.
CONTAINERS = {
    "sklearn": {"ColumnTransformer", "FeatureUnion", "Pipeline"},
    "imblearn": {"Pipeline"},
}


def is_stateless(given: Any) -> bool:
    """Return whether `fit` reads nothing of the records that `transform` uses."""
    if not is_exactly(given, _STATELESS):
        return False
    kind = type(given).__name__
    if kind == "FunctionTransformer":
        func = given.func
        # of NumPy itself: those of ``frompyfunc`` call a function of a user
        plain = isinstance(func, np.ufunc) and func.signature is None
        plain = plain and not {"d->d", "d->?"}.isdisjoint(func.types)
        return func is None or (plain and not given.kw_args)
    if kind == "HashingVectorizer":  # functions of a user might remember texts
        functions = given.analyzer, given.tokenizer, given.preprocessor
        return not any(map(callable, (*functions, given.strip_accents)))
    return True


def is_exactly(given: Any, known: Mapping[str, set[str]]) -> bool:
    """Return whether it is of one of these classes, by module, and no subclass."""
    home, kind = type(given).__module__, type(given).__name__
    return any(
        kind in names and home.startswith(f"{module}.")
        for module, names in known.items()
    )


def learns(step: Any, sparse: bool = False) -> bool:
    """Return whether a step of a pipeline may learn anything from the records.

    Only those of `is_stateless` are known not to, and what is declared to be frozen.
    ``sparse``: whether the step may get sparse rows.
    """
    if step is None or isinstance(step, str):  # "passthrough"
        return False
    if type(step).__module__.startswith("sklearn.frozen"):  # has what it wraps has
        return False
    if is_exactly(step, CONTAINERS):
        if hasattr(step, "steps"):
            return first_to_learn(_parts(step), sparse) is not None
        chooses = hasattr(step, "transformers") and (
            chooses_columns(step) or _chooses_format(step, sparse)
        )
        return chooses or any(learns(part, sparse) for part in _parts(step))
    return not is_stateless(step)


def first_to_learn(steps: Sequence[Any], sparse: bool = False) -> Any:
    """Return the first of steps, one after the other, that `learns`; or None."""
    for step in steps:
        if learns(step, sparse):
            return step
        sparse = _may_be_sparse(step, sparse)
    return None


def _chooses_format(transformer: Any, sparse: bool) -> bool:
    """Return whether the zeros of all records choose between sparse and dense rows.

    Last digits of sums differ between them. With a ``sparse_threshold`` of 0 all are
    dense, as they are where no part is sparse. Of known categories each row has as many
    zeros as all others.
    """
    return bool(transformer.sparse_threshold) and any(
        _may_be_sparse(part, sparse) and not _has_one_of_each(part)
        for part in _parts(transformer)
    )


def _may_be_sparse(step: Any, sparse: bool) -> bool:
    """Return whether a step may make sparse rows; ``sparse``: may get them."""
    if step is None or isinstance(step, str):
        return sparse and step != "drop"
    if not getattr(step, "sparse_threshold", True):
        return False
    inner = getattr(step, "estimator", step)  # of a frozen one
    texts = type(inner).__module__.startswith("sklearn.feature_extraction")
    asked = (getattr(inner, name, False) for name in ("sparse_output", "sparse"))
    makes = texts or any(each is True for each in asked)
    return sparse or makes or any(_may_be_sparse(part, False) for part in _parts(step))


def _has_one_of_each(step: Any) -> bool:
    """Return whether it makes a one of each column, and has no value without one."""
    inner = getattr(step, "estimator", step)
    known = is_exactly(inner, {"sklearn": {"OneHotEncoder"}})
    return known and inner.handle_unknown == "error" and inner.drop is None


def _parts(container: Any) -> list[Any]:
    """Return the parts of a container, or of a frozen one; of others none."""
    if hasattr(container, "transformers"):
        return [*(part[1] for part in container.transformers), container.remainder]
    names = ("steps", "transformer_list")
    found = (getattr(container, name) for name in names if hasattr(container, name))
    return [part[1] for part in next(found, ())]


def chooses_columns(transformer: Any) -> bool:
    """Return whether records choose columns of this ``ColumnTransformer``."""
    known = is_exactly(transformer, CONTAINERS)  # a subclass may do anything
    return not known or any(
        _chosen_by_records(part[2]) for part in transformer.transformers
    )


def _chosen_by_records(columns: Any) -> bool:
    """Return whether a function of all records chooses these columns.

    That of scikit-learn goes by names, and by types if it is told some.
    """
    if not is_exactly(columns, {"sklearn": {"make_column_selector"}}):
        return callable(columns)
    return columns.dtype_include is not None or columns.dtype_exclude is not None


def by_types(steps: Sequence[Any], kinds: Collection[Any]) -> Any:
    """Return the first step whose numbers depend on the types of all columns.

    ``steps`` come one after the other, and ``kinds`` are dtypes of the columns that the
    first one gets. What is found is a ``FunctionTransformer``: ``np.reciprocal`` of
    whole numbers is 0. Others make floats of them first. And any step, where columns
    meet that `_meet_in_float64` does not take.
    """
    return _followed(steps, kinds)[0]


def _followed(steps: Sequence[Any], kinds: Any) -> tuple[Any, Any]:
    """Return what `by_types` does, and types after the last step: none of floats.

    Types that stand in a Series of pandas are those of the columns of a table.
    """
    for step in steps:
        if step is None or isinstance(step, str):
            kinds = () if step == "drop" else kinds
            continue
        if is_exactly(step, {"privfeat": {"PublicColumns"}}):  # value by value
            kinds = ()
            continue
        chain = is_exactly(step, CONTAINERS) and hasattr(step, "steps")
        if not (chain or _meet_in_float64(kinds)):
            return step, kinds
        if is_exactly(step, CONTAINERS):
            found, kinds = _within(step, kinds)
            if found is not None:
                return found, kinds
        elif is_exactly(step, {"sklearn": {"FunctionTransformer"}}):
            if not all(_computes_floats(step.func, kind) for kind in kinds):
                return step, kinds
            kinds = [*kinds] if step.func is None else ()
        else:
            kinds = () if _makes_floats(step) else [*kinds]
    return None, kinds


def _makes_floats(step: Any) -> bool:
    """Return whether it makes numbers of one type, whatever it is given."""
    if type(step).__module__.startswith("sklearn.frozen"):
        return is_exactly(step.estimator, _MAKE_FLOATS)
    return is_stateless(step) and type(step).__name__ != "Binarizer"


def _meet_in_float64(kinds: Collection[Any]) -> bool:
    """Return whether columns that become one array are then rounded alike.

    Beside a column of float32, small whole numbers make an array of float32, and of
    float64 as soon as one of them is a half. Those of 32 bits or more make float64.
    """
    all_kinds = {getattr(kind, "subtype", kind) for kind in kinds}  # of sparse columns
    small = {
        kind
        for kind in all_kinds
        if getattr(kind, "kind", "f") == "f" and getattr(kind, "itemsize", 0) < 8
    }
    if not small or len(all_kinds) < 2:
        return True
    wide = [
        isinstance(kind, np.dtype) and kind.kind in "iu" and kind.itemsize >= 4
        for kind in all_kinds - small
    ]
    return len(small) == 1 and all(wide)


def _within(container: Any, kinds: Any) -> tuple[Any, Any]:
    if hasattr(container, "steps"):
        return _followed(_parts(container), kinds)
    parts = _parts(container)
    types = _types_of_parts(container, kinds) or [kinds] * len(parts)
    after = [_followed([part], own) for part, own in zip(parts, types, strict=True)]
    found = next((step for step, _ in after if step is not None), None)
    return found, [kind for _, own in after for kind in own]


def _types_of_parts(container: Any, kinds: Any) -> list[Any]:
    """Return the types of the columns of a table that each part gets; or nothing."""
    chosen = [part[2] for part in getattr(container, "transformers", ())]
    if not (chosen and hasattr(kinds, "iloc")) or any(map(callable, chosen)):
        return []
    places = type(kinds)(range(len(kinds)), kinds.index)
    own = []
    for columns in chosen:
        key = columns if isinstance(columns, slice) else [*np.atleast_1d(columns)]
        ends = (key.start, key.stop) if isinstance(key, slice) else key
        named = any(isinstance(end, str) for end in ends)
        own.append([*(places.loc[key] if named else places.iloc[key])])
    own.append([*{*places}.difference(*own)])  # the remainder
    return [kinds.iloc[each] for each in own]


def _computes_floats(func: Any, kind: Any) -> bool:
    """Return whether a function of floats makes floats of this type, and nothing else.

    Of a type that is no NumPy's, or that holds objects, nobody knows.
    """
    if not isinstance(kind, np.dtype):
        return func is None
    if func is None or kind.kind == "f":
        return True
    try:
        return bool(func.resolve_dtypes((kind, *[None] * func.nout))[0] == np.float64)
    except TypeError:
        return False
