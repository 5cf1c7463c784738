"""What is set for the whole process while private records are read.

Products of matrices have one thread, and MLflow logs nothing.
"""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from threading import Lock
from typing import Any

import numpy as np
from jaxtyping import Float
from threadpoolctl import ThreadpoolController

# What ``threadpoolctl`` can keep to one thread; not Accelerate, of macOS.
_LIMITED = ("openblas", "mkl", "blis", "flexiblas")
_lock = Lock()
_threads_before: list[int] = []  # for each body that runs
_limit = ExitStack()
MLFLOW = "mlflow.utils.autologging_utils"
_n_unlogged = 0  # bodies that run
_off = ExitStack()


@contextmanager
def one_thread_a_product() -> Iterator[int]:
    """Keep a product of NumPy or SciPy to one thread; give how many it had before.

    The first of several bodies, in whatever threads they run, sets it, and the last one
    sets it back. ``threadpool_limits`` remembers what it finds: where two threads leave
    it in another order than they came, the process keeps the limit.

    Threads that share a product by a vector round the rows where they meet in another
    way; by one thread all rows of a chunk are treated alike.
    """
    with _lock:
        if not _threads_before:
            blas = _controller().select(user_api="blas")
            found = [library.num_threads for library in blas.lib_controllers]
            _limit.enter_context(blas.limit(limits=1))
        else:
            found = _threads_before[:1]
        _threads_before.append(max([1, *found]))
    try:
        yield _threads_before[0]
    finally:
        with _lock:
            if len(_threads_before) == 1:
                _limit.close()
            _threads_before.pop()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def keeps_one_thread() -> bool:
    """Return whether `one_thread_a_product` is known to hold for products of NumPy.

    Else a row is treated alike if it is multiplied by itself.
    """
    name = library_of_numpy().lower()
    found = _controller().select(user_api="blas").lib_controllers
    return bool(found) and any(known in name for known in _LIMITED)


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
    if size < 16 or not keeps_one_thread():
        size = 1
    if n_outputs == 1:
        matrix = np.repeat(matrix, 2, axis=1)
    found = np.empty((len(rows), n_outputs))
    part = np.zeros((size, rows.shape[1]))
    with one_thread_a_product():
        for start in range(0, len(rows), size):
            some = rows[start : start + size]
            part[: len(some)] = some
            part[len(some) :] = 0.0
            found[start : start + size] = (part @ matrix)[: len(some), :n_outputs]
    return found


@cache
def library_of_numpy() -> str:
    """Return the name of the library that multiplies for NumPy."""
    built: Any = np.show_config(mode="dicts")
    return str(built["Build Dependencies"]["blas"].get("name", ""))


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
