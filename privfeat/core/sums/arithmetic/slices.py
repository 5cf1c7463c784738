"""Exact products of whole numbers, made of products of 8-bit numbers.

Most accelerators multiply float64 at a small fraction of the rate at which they
multiply 8-bit integers. Here a whole number is cut into digits of 7 bits,
``x = sum_i x_i 2**(7 i)``, and a product of matrices into products of their digits,
which are summed in int32 and put together in int64.

**Proof.** A digit is the remainder modulo 128 in ``[-64, 63]``; what it leaves is a
multiple of 128, at most ``(abs(x) + 64) / 128`` after the division. From ``2**20``
three digits remain (``2**13``, then at most 64), from ``2**32`` five (``2**25``,
``2**18``, ``2**11``, 16). All digits are at most 64, so products of two are at most
``2**12``. At most three pairs of digits have the same weight, as one of the factors has
three digits, and `LONGEST` entries are summed at once: int32 sums are at most
``3 * 2**17 * 2**12 < 2**31``, in any order. Times its weight, a sum is one term of the
product; int64 holds all partial sums of terms modulo ``2**64``, hence the product, if
it is below ``2**63``: ``2**53`` for the products of ``statistics``. Nothing is rounded:
the result is that of float64 products where those are exact.
"""

import time
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float64, Int8, Int32, Int64, Num

from privfeat.core.bounds.grid import COEF_BITS, GRID_BITS

_DIGIT_BITS = 7
# Entries of two rows that are multiplied and summed in int32 at once.
LONGEST = 2**17
_TRIAL_SHAPE = (2**13, 1024, 256)


def uses_slices() -> bool:
    """Return whether the devices of this process multiply slices rather than float64.

    On a CPU never, elsewhere if the first device was faster so in a trial on fixed
    numbers, once in a process. Results do not depend on it, nor it on records.
    """
    return jax.default_backend() != "cpu" and _slices_win(jax.local_devices()[0])


@lru_cache(maxsize=16)
def _slices_win(device: jax.Device) -> bool:
    rates = measured_rates(device)
    return rates["slices"] > rates["float64"]


def measured_rates(
    device: jax.Device, shape: tuple[int, int, int] = _TRIAL_SHAPE
) -> dict[str, float]:
    """Return exact products of a device per second, by slices and by float64.

    Of whole rows (n, c) with coefficients (m, c), and of residuals (n, m) with rows;
    ``shape`` is (n, c, m). The fastest of three runs each, after one that compiles.
    """
    n_rows, n_columns, n_outputs = shape
    with jax.enable_x64(True), jax.default_device(device):
        numbers = np.arange(n_rows * n_columns).reshape(n_rows, n_columns) * 7919
        rows = jnp.asarray(numbers % 2**GRID_BITS, jnp.float32)
        coef = rows[:n_outputs].astype(jnp.float64)
        work = 2 * n_rows * n_columns * n_outputs
        trials: dict[str, Callable[..., Any]] = {
            "slices": product,
            "float64": _float64_product,
        }
        return {
            name: 2 * work / _least_seconds(partial(_both, multiply), rows, coef)
            for name, multiply in trials.items()
        }


def _both(multiply: Any, rows: Num[Array, "n c"], coef: Num[Array, "m c"]) -> Any:
    scores = multiply(rows, coef, right_bits=COEF_BITS)
    narrow = scores.astype(jnp.int64) % 2**GRID_BITS
    return multiply(narrow.T, rows.T)


def _float64_product(
    left: Num[Array, "p k"], right: Num[Array, "q k"], **_: int
) -> Num[Array, "p q"]:
    left, right = left.astype(jnp.float64), right.astype(jnp.float64)
    return jnp.matmul(left, right.T, precision=jax.lax.Precision.HIGHEST)


def _least_seconds(run: Callable[..., Any], *operands: Any) -> float:
    compiled, seconds = jax.jit(run), []
    for _ in range(4):
        started = time.perf_counter()
        compiled(*operands).block_until_ready()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def product(
    left: Num[Array, "p k"], right: Num[Array, "q k"], *, right_bits: int = GRID_BITS
) -> Int64[Array, "p q"]:
    """Return ``left right^T`` of whole numbers, in a trace with 64-bit types.

    Parameters
    ----------
    left, right : arrays of shapes (p, k) and (q, k), of any type
        Whole numbers of at most ``2**20``, and of at most ``2**right_bits``.
    right_bits : {20, 32}

    Returns
    -------
    product : int64 array of shape (p, q)
        Exact, if below ``2**63``.
    """
    total: Any = jnp.int64(0)
    for start in range(0, left.shape[1], LONGEST):
        part = slice(start, start + LONGEST)
        lefts = _digits(left[:, part], GRID_BITS)
        rights = _digits(right[:, part], right_bits)
        for weight in range(len(lefts) + len(rights) - 1):
            pairs = [
                (one, rights[weight - place])
                for place, one in enumerate(lefts)
                if 0 <= weight - place < len(rights)
            ]
            total += _weighted(pairs, weight)
    return jnp.broadcast_to(total, (len(left), len(right)))


def scores(
    rows: Num[Array, "n c"], coef: Float64[Array, "m c"]
) -> Float64[Array, "n m"]:
    """Return ``rows coef^T`` for `whole_coef`; NaN if a coefficient is NaN."""
    products = product(rows, coef, right_bits=COEF_BITS).astype(jnp.float64)
    return jnp.where(jnp.all(jnp.isfinite(coef)), products, jnp.nan)


def gram(rows: Num[Array, "n c"]) -> Int64[Array, "c c"]:
    """Return ``rows^T rows`` of at most `LONGEST` rows, as `product` does.

    Calls have `calls.CALL_ROWS`, fewer. With six products of digits instead of nine, of
    which three count twice.
    """
    digits = _digits(rows.T, GRID_BITS)
    total: Any = jnp.int64(0)
    for i, one in enumerate(digits):
        total += _weighted([(one, one)], 2 * i)
        for j in range(i + 1, len(digits)):
            part = _weighted([(one, digits[j])], i + j)
            total += part + part.T
    return jnp.asarray(total)


def _weighted(
    pairs: list[tuple[Int8[Array, "p k"], Int8[Array, "q k"]]], weight: int
) -> Int64[Array, "p q"]:
    """Return the sum of the products of pairs of digits, times their weight."""
    left, right = (jnp.concatenate(parts, axis=1) for parts in zip(*pairs, strict=True))
    return digit_sums(left, right).astype(jnp.int64) << (_DIGIT_BITS * weight)


def digit_sums(
    left: Int8[Array, "p k"], right: Int8[Array, "q k"]
) -> Int32[Array, "p q"]:
    """Return ``left right^T``, summed in int32: what the hardware must do exactly."""
    return jax.lax.dot_general(
        left, right, (((1,), (1,)), ((), ())), preferred_element_type=jnp.int32
    )


def _digits(values: Num[Array, "p k"], bits: int) -> list[Int8[Array, "p k"]]:
    """Return the digits of whole numbers of at most ``2**bits``, the lowest first."""

    def split(rest: Array) -> Iterator[Array]:
        for _ in range(bits // _DIGIT_BITS):
            low = ((rest + 64) & 127) - 64
            yield low
            rest = (rest - low) >> _DIGIT_BITS
        yield rest

    whole = values.astype(jnp.int32 if bits <= GRID_BITS else jnp.int64)
    return [digit.astype(jnp.int8) for digit in split(whole)]
