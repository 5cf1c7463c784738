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
# By one of these, values say which type they have, or that each column has one.
_TYPED = (
    *("dtype", "dtypes", "typecode", "columns", "column_names", "__array__"),
    *("__array_interface__", "__arrow_c_array__", "__arrow_c_stream__"),
)


def is_untyped(values: Any) -> bool:
    """Return whether values are a sequence without a type, as a deque is, but no list.

    Lists are asked for the type of each record. Of others NumPy makes one type of all,
    by the same records.
    """
    plain = (list, tuple, range, str, bytes, bytearray, Mapping)
    sequence = all(hasattr(type(values), name) for name in ("__len__", "__getitem__"))
    typed = isinstance(values, plain) or any(hasattr(values, name) for name in _TYPED)
    return sequence and not typed
