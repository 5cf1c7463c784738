"""Whether the devices of this process compute as the proofs suppose.

Exact sums need products without rounding. Some libraries replace float64 products by
sums of shorter ones, scaled by the largest factor: then one record changes how another
is rounded. Which products a device makes, of float64 or of ``slices``, is tried here.

TPUs are left out, although products of slices need no float64: they have none of IEEE
754, but pairs of float32, without its range and its last bits. The proofs of
``clipping`` need both, and so does the law of ``draws``, whose uniform numbers go down
to ``2**-128``.
"""

import math
import os
import re
from functools import lru_cache
from pathlib import Path

import jax
import numpy as np
from jaxtyping import Float64, Int64, Num, UInt64

from privfeat.core.bounds.grid import GRID_BITS
from privfeat.core.bounds.rows import clip_rows
from privfeat.core.sums import kernels, slices, statistics
from privfeat.core.sums.records import rows_of_call
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
_N_OUTPUTS = 5


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
            f"{jax.default_backend()!r}. Bounds and noise need IEEE float64; set "
            "JAX_PLATFORMS=cpu."
        )
    if private:
        check_exact_products()


def check_exact_products() -> None:
    """Compare worst-case products of every local device with those of integers.

    Once for each device; 0.1 seconds on a CPU.

    Raises
    ------
    PrivacyError
        If a product is wrong in one bit.
    """
    check_settings()
    for device in jax.local_devices():
        if not _is_exact(device, slices.chosen()):
            raise PrivacyError(
                f"products must be exact, and are not on {device}. Unset what emulates "
                "or shortens float64, update the driver, or set JAX_PLATFORMS=cpu."
            )


@lru_cache(maxsize=1)
def _bounds_hold() -> bool:
    """Return whether rows of subnormal numbers and of NaN are bounded as proved."""
    rows = np.array([[2.3e-308, 5e-324], [np.nan, 1.0]])
    bounded = clip_rows(rows, clip_norm=1.0, row_scaling="unit").rows
    # on the host: what breaks the bounds in XLA may break the comparison as well
    short, empty = np.asarray(bounded, np.float64)
    return bool(np.linalg.norm(short) <= 2**20 and np.all(empty == 0.0))


@lru_cache(maxsize=256)
def _is_exact(device: jax.Device, sliced: bool) -> bool:
    """Return whether all products of a call are right, of numbers hard to multiply."""
    rows, narrow, coef = _hard_numbers()
    with jax.enable_x64(True), jax.default_device(device):
        placed = jax.device_put((rows.astype(np.float32), narrow, coef), device)
        sums, scores = map(np.asarray, kernels.products_of(*placed, sliced))
        # on a CPU by NumPy, whatever the device
        gram = np.asarray(statistics.gram_of(rows, sliced))
        longest = not sliced or _longest_sums_hold()
    whole = rows.astype(np.int64)
    # Of the largest product not every entry is compared but what it does to vectors,
    # modulo 2**64: an integer product of it would take a second.
    vectors = _bits(rows.shape[1], 4).view(np.int64)
    return bool(
        longest
        and _whole(sums, narrow.astype(np.int64).T @ whole)
        and _whole(scores, (whole >> 5) @ coef.astype(np.int64).T)
        and np.all(gram == np.trunc(gram))
        and np.array_equal(gram.astype(np.int64) @ vectors, whole.T @ (whole @ vectors))
    )


def _whole(found: Num[np.ndarray, "p q"], expected: Int64[np.ndarray, "p q"]) -> bool:
    """Return whether numbers are these integers, of at most ``2**53``."""
    return np.array_equal(found, expected.astype(np.float64))


def _hard_numbers() -> tuple[Float64[np.ndarray, "..."], ...]:
    """Return whole rows of a call, residuals and coefficients, as large as allowed.

    Rows of odd numbers of 20 bits alternate with rows of 1 and -1: what scales them
    together loses bits. Sums of the first column reach ``2**53`` in the largest calls.
    Coefficients of a norm of at most ``2**32`` keep sums of the scores of ``rows / 32``
    within ``2**52``; one of 32 bits stands alone.
    """
    n_rows = rows_of_call(1)
    n_columns = 2**20 // n_rows
    bits = _bits(n_rows, n_columns)
    signs = 1.0 - 2.0 * (bits >> 63)
    rows = ((bits % 2**GRID_BITS) | 1).astype(np.float64)
    rows[1::2] = 1.0
    rows *= signs
    rows[:, 0], rows[:, 1] = 2.0**GRID_BITS, 2.0**GRID_BITS - 1.0
    largest = 2**32 >> math.ceil(math.log2(n_columns) / 2)
    coef = ((bits[:_N_OUTPUTS] >> 20) % largest | 1).astype(np.float64)
    coef[1], coef[2] = largest, np.arange(n_columns) == 0
    coef[2] *= 2.0**32 - 1.0
    return rows, rows[:, :_N_OUTPUTS].copy(), coef * signs[-_N_OUTPUTS:]


def _longest_sums_hold() -> bool:
    """Return whether int32 holds the longest sums of digits, the largest among them.

    An accelerator that sums in float32 would lose what is beyond ``2**24``.
    """
    digits = (64 - _bits(4, 3 * slices.LONGEST) % 4).astype(np.int8)
    digits[0] = 64
    digits[2], digits[3, ::2] = -digits[2], -digits[3, ::2]
    found = np.asarray(jax.jit(slices.digit_sums)(digits, digits))
    return np.array_equal(found, digits.astype(np.int64) @ digits.T.astype(np.int64))


def _bits(n_rows: int, n_columns: int) -> UInt64[np.ndarray, "p q"]:
    """Return fixed bits without a pattern that sums would share."""
    numbers: UInt64[np.ndarray, " n"] = np.arange(n_rows * n_columns, dtype=np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        numbers ^= numbers >> np.uint64(shift)  # as SplitMix64 mixes a counter
        numbers *= np.uint64(factor)
    numbers ^= numbers >> np.uint64(31)
    return numbers.reshape(n_rows, n_columns)
