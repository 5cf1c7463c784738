"""Whether the devices of this process compute as the proofs suppose.

Exact sums need products without rounding. Some libraries replace float64 products by
sums of shorter ones, scaled by the largest factor: then one record changes how another
is rounded. Which products a device makes, of float64 or of ``slices``, is tried here.

TPUs are left out, although products of ``slices`` are of integers: their float64 is a
pair of float32, without the range of IEEE 754 and, for wide rows, its last bits. Before
one is admitted, three things must hold there: the relative errors that ``rows`` and
``clipping`` allow (norms, quotients and products within ``2**-36`` of the real number,
and no overflow below ``2**1023``), those of the residuals in every step, and uniform
numbers down to ``2**-129`` in ``draws``.
"""

import os
import re
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from threading import Event, Thread

import jax
import jax.numpy as jnp
import numpy as np

from privfeat._warnings import warnings_shown
from privfeat.core.bounds.rows import clip_rows
from privfeat.core.sums.arithmetic import host, slices
from privfeat.core.sums.trials import products_are_exact
from privfeat.exceptions import PrivacyError

EXACT_BACKENDS = ("cpu", "gpu")
# In which a small product is there, even on a machine that does much else.
_SECONDS = 30.0
# By these cuBLAS emulates float64 and float32, or shortens the factors of float32; by
# the flags XLA does, or takes the larger of a number and NaN to be the number.
_VARIABLES = re.compile(
    r"CUBLAS(LT)?_EMULAT\w*|CUBLAS(LT)?_FIXEDPOINT_EMULATION\w*|NVIDIA_TF32_OVERRIDE"
)
_FLAGS = re.compile(
    r"--(xla_\w*(?:fast_m(?:ath|in_max)|emulat|ozaki|tf32|bf16_(?:\dway|bf16))\w*)"
    r"(?!\S*=(?:false|0)(?!\S))"  # "=0" turns one off, and "=01" is refused
)


def check_settings() -> None:
    """Refuse devices, variables and flags that make arithmetic less exact.

    Raises
    ------
    PrivacyError
        If the device is neither CPU nor GPU. If a variable or flag is set, to another
        value than 0; those of cuBLAS count on GPUs alone. If rows that are not finite
        are not left out, whatever the variables say, or JAX is told to refuse what a
        fit needs, or would wait for ever, as in the fork of a process that has used it.
    """
    _check_backend()
    found = _FLAGS.findall(flags_of_xla())
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
    check_answers()
    # Settings may be of this thread, or of all; a fit reads ahead in another one.
    with ThreadPoolExecutor(1) as other:
        if not (_jax_runs() and other.submit(_jax_runs).result()):
            raise PrivacyError(
                "JAX must copy arrays to devices and compute there, and a setting "
                "refuses it. Set jax_transfer_guard to 'allow', and leave "
                "jax_no_execution off."
            )
    # The variable may be gone, or the file another one, since XLA read them.
    if not _bounds_hold():
        raise PrivacyError(
            "XLA must compute as IEEE 754 says, and does not: rows that are not "
            "finite would not be left out. Take fast math out of XLA_FLAGS."
        )


def flags_of_xla() -> str:
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
    _check_backend()
    if private:
        check_exact_products()


def _check_backend() -> None:
    if jax.default_backend() not in EXACT_BACKENDS:
        raise PrivacyError(
            f"the device must be one of {EXACT_BACKENDS}, got "
            f"{jax.default_backend()!r}. Bounds and noise need IEEE float64; set "
            "JAX_PLATFORMS=cpu."
        )
    kinds = sorted({device.device_kind for device in jax.local_devices()})
    if len(kinds) > 1:  # one record more moves others to the next device
        raise PrivacyError(
            f"devices must be of one kind, which round a record alike, got {kinds}. "
            "Show the process one kind, as CUDA_VISIBLE_DEVICES does."
        )


def check_exact_products() -> None:
    """Compare worst-case products of every local device with those of integers.

    Once for each device of a process, which is not tried again where settings change;
    0.3 seconds on a CPU, where NumPy's residuals are tried too.

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
        if not products_are_exact(device, slices.uses_slices()):
            raise PrivacyError(
                f"products must be exact, and are not on {device}. Unset what emulates "
                "or shortens float64, update the driver, or set JAX_PLATFORMS=cpu."
            )


def check_answers() -> None:
    """Raise `PrivacyError` if JAX would wait for ever in this process."""
    if not _answers(os.getpid()):
        raise PrivacyError(
            f"JAX must answer within {_SECONDS:g} seconds, and does not: its threads "
            "are missing in the fork of a process that has used it. Start processes by "
            "'spawn' or 'forkserver', as multiprocessing.set_start_method does."
        )


@lru_cache(maxsize=1)
def _answers(process: int) -> bool:
    """Return whether JAX compiles and runs, or fails, in this process, and ends."""
    ended = Event()

    def run() -> None:
        try:
            jax.jit(lambda x: x @ x)(np.ones((256, 256), np.float32))
        except Exception:  # noqa: BLE001 - `_jax_runs` says so
            pass
        finally:
            ended.set()

    Thread(target=run, daemon=True).start()  # which never ends in a fork
    return ended.wait(_SECONDS)


def _jax_runs() -> bool:
    """Return whether JAX does in this thread what a fit asks of it."""
    try:
        with warnings_shown():  # of code that could not be kept
            return float(np.asarray(jnp.sqrt(np.ones(1)))[0]) == 1.0
    except Exception:  # noqa: BLE001 - each setting raises another error
        return False


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
