"""The closed sets of option values, named once, and which values have a type."""

from collections.abc import Mapping
from typing import Any, Literal, get_args

Adjacency = Literal["add_remove", "replace_one"]
Unit = Literal["record", "user"]
Accounting = Literal["exact", "zcdp", "pld", "rdp"]
Arithmetic = Literal["float64", "exact"]
Loss = Literal["sigmoid", "softmax", "squared"]
LossOption = Literal["auto", "softmax", "sigmoid", "squared"]
RowScaling = Literal["unit", "clip"]
MatrixNoise = Literal["symmetric", "full"]
Iterate = Literal["average", "last"]
UserBound = Literal["count", "sum"]
ClassWeight = Any  # "balanced", a mapping of classes to numbers, or an array of these

ADJACENCIES: tuple[Adjacency, ...] = get_args(Adjacency)
UNITS: tuple[Unit, ...] = get_args(Unit)
ACCOUNTINGS: tuple[Accounting, ...] = get_args(Accounting)
ARITHMETICS: tuple[Arithmetic, ...] = get_args(Arithmetic)
LOSS_OPTIONS: tuple[LossOption, ...] = get_args(LossOption)
ROW_SCALINGS: tuple[RowScaling, ...] = get_args(RowScaling)
MATRIX_NOISES: tuple[MatrixNoise, ...] = get_args(MatrixNoise)
USER_BOUNDS: tuple[UserBound, ...] = get_args(UserBound)
ITERATES: tuple[Iterate, ...] = get_args(Iterate)
# Parameters that no file holds which may leave: with the seed anyone can subtract the
# noise, and the others name places or hold data.
STAYS_AT_HOME = (
    *("random_state", "ledger", "checkpoint_dir", "weights", "public"),
    "on_step",
)
# What a statement says of a network that had ``weights``.
FIRST_WEIGHTS = "the weights that the network started from"
# What it says of rows that were passed as ``public``, after their number.
PUBLIC_ROWS = "public rows, which the guarantee does not cover"
# How it begins to say that `privfeat.analysis.rates.shifted_rates` moved probabilities.
SHIFTED = "the rates that probabilities were shifted to"
# What a pipeline sets in its private steps, or gives them a part of.
SET_BY_PIPELINE = (
    *("epsilon", "delta", "rho", "noise_multiplier", "adjacency", "accounting"),
    *("arithmetic", "max_group_size", "ledger", "random_state"),
)
# Whose arrays and tables have a type for all of their values, or for each column. Of
# torch its tensors alone: it has classes for data sets, too.
_TYPED = (
    *("numpy", "scipy", "pandas", "polars", "pyarrow", "jax", "jaxlib", "h5py"),
    *("array", "cupy", "dask", "tensorflow", "xarray", "privfeat"),
)
_SEQUENCE = (
    "another sequence: one of its records decides the type of all. Pass list(X)."
)
_DICTIONARY = (
    "a column of a dictionary type of Arrow, whose gaps NumPy takes for the last of "
    "its values. Pass X.to_pandas(), or cast the column to the type of its values."
)


def found_untyped(values: Any) -> str | None:
    """Return what values are whose type NumPy would take from all records, or None.

    Sequences that are no lists: a deque, a data set for PyTorch, also if it makes an
    array of itself. Lists are taken: they are asked for the type of each record. And
    columns of Arrow with a dictionary, whose gaps NumPy fills.
    """
    kind = type(values)
    homes = {f"{base.__module__}.{base.__name__}" for base in kind.__mro__}
    packages = {home.partition(".")[0] for home in homes}
    if "pyarrow" in packages:
        columns = getattr(values, "schema", ()) if hasattr(values, "schema") else ()
        types = [column.type for column in columns] or [getattr(values, "type", None)]
        return _DICTIONARY if any("dictionary" in str(one) for one in types) else None
    plain = (list, tuple, range, str, bytes, bytearray, memoryview, Mapping)
    sequence = all(hasattr(kind, name) for name in ("__len__", "__getitem__"))
    typed = not packages.isdisjoint(_TYPED) or "torch.Tensor" in homes
    if not sequence or typed or isinstance(values, plain) or hasattr(kind, "to_pandas"):
        return None
    return _SEQUENCE
