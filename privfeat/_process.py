"""What is set for the whole process while private records are read, and where it runs.

Products of matrices have one thread, and MLflow logs nothing.
"""

import os
import platform
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

import numpy as np
from jaxtyping import Float
from threadpoolctl import ThreadpoolController

from privfeat.exceptions import PrivacyError

# What ``threadpoolctl`` can keep to one thread; not Accelerate, of macOS.
_LIMITED = ("openblas", "mkl", "blis", "flexiblas")
# What Linux says of a processor, by which code is chosen for it.
_MODEL = (
    *("vendor_id", "cpu family", "model", "model name"),
    *("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "isa"),
)
_INSTRUCTIONS = re.compile(
    r"(?<!\S)(?:avx|amx|fma|sse|ssse|f16c|xop|sve|sme|asimd|fp)\w*"
)
_lock = Lock()
_n_bodies = 0  # of `one_thread_a_product`, that run
_n_threads_before = 1
_last_left = Event()
_keepers: list[Thread] = []  # at most one
MLFLOW = "mlflow.utils.autologging_utils"
_n_unlogged = 0  # bodies that run
_off = ExitStack()


@contextmanager
def one_thread_a_product() -> Iterator[int]:
    """Keep a product of NumPy or SciPy to one thread; give how many it had before.

    Of all threads, from the first of several bodies to the last one, whatever threads
    these run in, and whatever limits others set and take back meanwhile. Whether it
    could be done `keeps_one_thread` says, within the body. RuntimeError at its end if
    the number was changed nevertheless; PrivacyError as `check_short_numbers`.

    Threads that share a product by a vector round the rows where they meet in another
    way; by one thread all rows of a chunk are treated alike.
    """
    global _n_bodies, _n_threads_before
    check_short_numbers()
    with _lock:
        if _n_bodies == 0:
            _end_keeper()  # of a body that Ctrl-C ended before it began
            found = [library.num_threads or 1 for library in _blas().lib_controllers]
            _n_threads_before = max([1, *found])
            _start_keeper()
        _n_bodies += 1
    try:
        with _blas().limit(limits=1):  # where each thread has a number of its own
            kept = keeps_one_thread()
            yield _n_threads_before
            if kept and not keeps_one_thread():
                raise RuntimeError(
                    "products must keep to one thread while private records are read, "
                    "got another number by other code. Do not set it meanwhile."
                )
    finally:
        with _lock:
            _n_bodies -= 1
            if _n_bodies == 0:
                _end_keeper()


def _start_keeper() -> None:
    global _last_left
    kept, _last_left = Event(), Event()
    keeper = Thread(target=_keep, args=(kept, _last_left), daemon=True)
    keeper.start()
    _keepers.append(keeper)
    kept.wait()


def _end_keeper() -> None:
    """Set the number of threads back, before anyone else sets another."""
    _last_left.set()
    while _keepers:
        _keepers[-1].join()
        _keepers.pop()


def _keep(kept: Event, last_left: Event) -> None:
    """Limit products until the last body has ended, in a thread that lives as long.

    OpenBLAS has one number for the process. Only the first thread that changed it may
    do so again, until it has set it back; what others ask for is passed over without a
    word. A thread that holds it now, as a script does that set it at its start, loses
    it here.
    """
    try:
        libraries = _blas().lib_controllers
        for library in [x for x in libraries if hasattr(x, "clear_controlling_thread")]:
            library.clear_controlling_thread(force=True)
        limit = _blas().limit(limits=1)
    finally:
        kept.set()
    with limit:
        last_left.wait()


def _blas() -> ThreadpoolController:
    return _controller().select(user_api="blas")


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def keeps_one_thread() -> bool:
    """Return whether products of NumPy have one thread here, as far as is known.

    Ask within a body of `one_thread_a_product`. Else a row is treated alike if it is
    multiplied by itself.
    """
    name = library_of_numpy().lower()
    found = [library.num_threads for library in _blas().lib_controllers]
    return {*found} == {1} and any(known in name for known in _LIMITED)


def times_matrix(
    rows: Float[np.ndarray, "n d"], matrix: Float[np.ndarray, "d m"]
) -> Float[np.ndarray, "n m"]:
    """Return the product, each row of which is rounded alike beside any others.

    BLAS takes another way for other numbers of rows. Where features cancel, what it
    rounds is all that is left, and a step that scales rows makes large numbers of it.
    So it gets 1,024 rows at a time, or fewer wide ones, the last ones filled up with
    zeros, and one thread. A product by one column, which takes rows by four and the
    rest otherwise, gets a second one.
    """
    n_outputs, size = matrix.shape[1], 1024
    while size * rows.shape[1] > 2**22:
        size //= 2  # a power of two: no rows are left over
    if n_outputs == 1:
        matrix = np.repeat(matrix, 2, axis=1)
    found = np.empty((len(rows), n_outputs))
    with one_thread_a_product():
        if size < 16 or not keeps_one_thread():
            size = 1
        part = np.zeros((size, rows.shape[1]))
        for start in range(0, len(rows), size):
            some = rows[start : start + size]
            part[: len(some)] = some
            part[len(some) :] = 0.0
            found[start : start + size] = (part @ matrix)[: len(some), :n_outputs]
    return found


def check_short_numbers() -> None:
    """Refuse a thread that takes subnormal numbers for zero.

    Those of float32 are normal ones of float64: what becomes float64 here would lose
    them, and what was float64 before keeps them, so one record of that type decides for
    all. Torch's ``set_flush_denormal`` and code compiled with ``-ffast-math`` set that
    for whole threads, and those which they start.
    """
    shortest = np.full(4, 2.0**-149, np.float32)
    if not shortest.astype(np.float64).all():
        raise PrivacyError(
            "subnormal numbers must not be taken for zero, and this thread does. Call "
            "torch.set_flush_denormal(False), or start a process without what does so."
        )


def versions_of_blas() -> list[str]:
    """Return what multiplies for NumPy: library, version, and processor it is for."""
    name, found = library_of_numpy().lower(), set()
    for library in _blas().lib_controllers:
        if library.internal_api in name:
            info = library.info()
            kinds = (info.get(key) for key in ("version", "architecture"))
            found.add(f"{library.internal_api} {' '.join(map(str, kinds))}")
    return sorted(found) or [name]


@cache
def library_of_numpy() -> str:
    """Return the name of the library that multiplies for NumPy."""
    built: Any = np.show_config(mode="dicts")
    return str(built["Build Dependencies"]["blas"].get("name", ""))


def processor() -> dict[str, str]:
    """Return what decides how code of this host rounds: processor, and cores in use.

    Compilers and libraries choose instructions, and with them the order of a sum, by
    its model; how a product is divided follows from the number of cores.
    """
    usable = getattr(os, "sched_getaffinity", None)
    kept = {
        "machine": platform.machine(),
        "processor": platform.processor(),
        "cores": str(len(usable(0)) if usable else os.cpu_count()),
    }
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:  # it is no Linux
        return kept
    first = text.strip().partition("\n\n")[0].split("\n")
    found = {
        name.strip(): value.strip()
        for name, _, value in (line.partition(":") for line in first)
    }
    kept |= {name: found[name] for name in _MODEL if name in found}
    for name in ("flags", "Features"):
        kept[name] = " ".join(sorted(_INSTRUCTIONS.findall(found.get(name, ""))))
    return kept


@contextmanager
def unlogged() -> Iterator[None]:
    """Let MLflow's autologging write nothing while the body runs.

    It patches what asks a fitted model of scikit-learn, not fits alone, and logs a
    digest of all rows that are passed, and their number. Private records are passed one
    at a time: it would log a digest of each. Its switch knows no threads and no blocks
    within others, so the first body turns it off, and the last one on.

    The module ``MLFLOW`` must be loaded: without it nothing is logged. RuntimeError if
    it has no such switch.
    """
    global _n_unlogged
    switch = getattr(sys.modules[MLFLOW], "disable_autologging", None)
    if switch is None:
        raise RuntimeError(
            "autologging must be off while private records are read, and this MLflow "
            "does not say how. Call mlflow.autolog(disable=True) in a new process."
        )
    with _lock:
        if _n_unlogged == 0:
            _off.enter_context(switch())
        _n_unlogged += 1
    try:
        yield
    finally:
        with _lock:
            _n_unlogged -= 1
            if _n_unlogged == 0:
                _off.close()
