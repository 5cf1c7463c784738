"""Whether the devices of this process compute as the proofs suppose.

Exact sums need float64 products without rounding. Some libraries replace such products
by sums of shorter ones, scaled by the largest factor: then one record changes how
another is rounded.
"""

import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Float64, UInt64

from privfeat.core.bounds.grid import GRID_BITS
from privfeat.core.bounds.rows import clip_rows
from privfeat.core.sums import host, statistics
from privfeat.core.sums.records import CHUNK_ROWS, in_order
from privfeat.exceptions import PrivacyError

EXACT_BACKENDS = ("cpu", "gpu")
# By these cuBLAS emulates float64 and float32, or shortens the factors of float32; by
# the flags XLA does, or takes the larger of a number and NaN to be the number.
_VARIABLES = re.compile(
    r"CUBLAS(LT)?_EMULAT\w*|CUBLAS(LT)?_FIXEDPOINT_EMULATION\w*|NVIDIA_TF32_OVERRIDE"
)
_FLAGS = re.compile(
    r"--(xla_\w*(?:fast_m(?:ath|in_max)|emulat|ozaki|tf32|bf16_(?:\dway|bf16))\w*)"
    r"(?!\S*=(?:false|0))"
)
# NumPy multiplies by a vector, by a few vectors, and by many, in different code.
_N_OUTPUTS = (1, 4, 128)


def check_settings() -> None:
    """Refuse variables and flags of this process that make arithmetic less exact.

    Raises
    ------
    PrivacyError
        If one is set, to another value than 0; those of cuBLAS count on GPUs alone. Or
        if rows that are not finite are not left out, whatever the variables say.
    """
    found = _FLAGS.findall(_flags())
    if jax.default_backend() != "cpu":
        found += [
            name
            for name, value in os.environ.items()
            if _VARIABLES.fullmatch(name) and value not in ("", "0")
        ]
    if found:
        raise PrivacyError(
            "products must be those of IEEE 754, which the environment changes by "
            f"{', '.join(sorted(found))}. Unset it before Python starts."
        )
    # The variable may be gone, or the file another one, since XLA read them.
    if not _bounds_hold():
        raise PrivacyError(
            "XLA must compute as IEEE 754 says, and does not: rows that are not "
            "finite would not be left out. Take fast math out of XLA_FLAGS."
        )


def _flags() -> str:
    """Return the flags of XLA; the variable may name a file that holds them."""
    flags = os.environ.get("XLA_FLAGS", "").strip()
    if not flags or flags.startswith("-"):
        return flags
    try:
        return Path(flags).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise PrivacyError(
            "XLA_FLAGS must hold flags, or name a file of them that can be read, got "
            f"{flags!r}. Pass the flags themselves."
        ) from error


def check_devices(*, private: bool) -> None:
    """Raise `PrivacyError` unless the devices compute as the proofs of sums suppose.

    Without privacy only the kind of the devices counts.
    """
    if jax.default_backend() not in EXACT_BACKENDS:
        raise PrivacyError(
            f"the device must be one of {EXACT_BACKENDS}, got "
            f"{jax.default_backend()!r}. Exact sums need IEEE float64."
        )
    if private:
        check_exact_products()


def check_exact_products() -> None:
    """Compare worst-case products of every local device with those of integers.

    Once for each device; 0.3 seconds on a CPU, where NumPy's residuals are tried too.

    Raises
    ------
    PrivacyError
        If a product is wrong in one bit, or residuals depend on the place of a record.
    """
    check_settings()
    if not host.rows_are_alike():  # of sparse rows, whatever the device
        raise PrivacyError(
            "NumPy must treat all rows alike, and does not. Install another build."
        )
    for device in jax.local_devices():
        if not _is_exact(device):
            raise PrivacyError(
                f"float64 products must be exact, and are not on {device}. Unset what "
                "emulates or shortens float64, update the driver, or set "
                "JAX_PLATFORMS=cpu."
            )


@lru_cache(maxsize=1)
def _bounds_hold() -> bool:
    """Return whether rows of subnormal numbers, NaN and infinity are bounded."""
    strange = np.array([[5e-324], [np.nan], [np.inf], [-np.inf]])
    pairs = np.hstack([strange, [[2.3e-308], [1.0], [1.0], [1.0]]])
    found = (
        clip_rows(pairs, clip_norm=1.0, row_scaling="unit"),
        clip_rows(strange, clip_norm=1.0, row_scaling="clip", intercept_scaling=0.1),
    )
    # on the host: what breaks the bounds in XLA may break the comparison as well
    bounded = [np.asarray(each.rows, np.float64) for each in found]
    return all(
        np.linalg.norm(short) <= 2**20 and not np.any(lost) for short, *lost in bounded
    )


@lru_cache(maxsize=256)
def _is_exact(device: jax.Device) -> bool:
    """Return whether all products of a chunk are right, of numbers hard to multiply."""
    rows, narrow, coef = _hard_numbers()
    on_cpu, short = jax.default_backend() == "cpu", np.floor(rows / 32.0)
    tall = _hard_rows(host.most_rows(1)) if on_cpu else rows
    with jax.default_device(device):
        right = [_is_product(statistics.gram_of(tall), tall.T, tall)]
        placed = jax.device_put(rows.astype(np.float32), device)
        calls = [(placed, narrow[:, :m], coef[:m]) for m in _N_OUTPUTS]
        for sums, scores in in_order(statistics.arithmetic().products_of, calls):
            _, left, few = calls[len(right) // 2]
            right += [_is_product(sums, left.T, rows)]
            right += [_is_product(scores, short, few.T)]
    return all(right)


def _is_product(
    found: Float64[Any, "p q"],
    left: Float64[np.ndarray, "p k"],
    right: Float64[np.ndarray, "k q"],
) -> bool:
    """Return whether floats are the product of whole numbers, all within ``2**53``.

    By what it does to vectors, modulo ``2**64``: an integer product takes a second.
    """
    vectors = _bits(right.shape[1], 4).view(np.int64)
    expected = left.astype(np.int64) @ (right.astype(np.int64) @ vectors)
    whole = np.asarray(found)
    return bool(
        np.all(whole == np.trunc(whole))
        and np.array_equal(whole.astype(np.int64) @ vectors, expected)
    )


def _hard_numbers() -> tuple[Float64[np.ndarray, "..."], ...]:
    """Return whole rows of a chunk, residuals and coefficients, as large as allowed.

    Coefficients of ``2**27`` keep sums of the scores of ``rows / 32`` within ``2**52``.
    """
    rows, bits = _hard_rows(CHUNK_ROWS), _bits(CHUNK_ROWS, CHUNK_ROWS)[: _N_OUTPUTS[-1]]
    coef = ((bits >> 20) % 2**27 | 1).astype(np.float64)
    coef[1] = 2.0**27
    return (
        rows,
        rows[:, 1 : 1 + len(coef)].copy(),
        coef * (1.0 - 2.0 * (bits[::-1] >> 63)),
    )


def _hard_rows(n_rows: int) -> Float64[np.ndarray, "b c"]:
    """Return ``2**20`` whole numbers of 20 bits, in so many rows.

    Rows of odd numbers alternate with rows of 1 and -1: what scales them together loses
    bits. Squares of the first column sum to ``2**40 n_rows``.
    """
    bits = _bits(n_rows, 2**20 // n_rows)
    rows = ((bits % 2**GRID_BITS) | 1).astype(np.float64)
    rows[1::2] = 1.0
    rows *= 1.0 - 2.0 * (bits >> 63)
    rows[:, 0], rows[:, 1] = 2.0**GRID_BITS, 2.0**GRID_BITS - 1.0
    return np.asarray(rows)


def _bits(n_rows: int, n_columns: int) -> UInt64[np.ndarray, "p q"]:
    """Return fixed bits without a pattern that sums would share."""
    numbers: UInt64[np.ndarray, " n"] = np.arange(n_rows * n_columns, dtype=np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        numbers ^= numbers >> np.uint64(shift)  # as SplitMix64 mixes a counter
        numbers *= np.uint64(factor)
    numbers ^= numbers >> np.uint64(31)
    return numbers.reshape(n_rows, n_columns)
