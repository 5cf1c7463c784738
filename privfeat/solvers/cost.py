"""What a fit takes of the memory and of time, told before it is charged."""

import math

from privfeat._memory import memory_bytes
from privfeat._warnings import warn

# Matrices of float64 that a fit holds at once, at least: the sum and its copies, the
# noise, eigenvectors and their workspace.
_N_MATRICES = 6
# Copies of a release that are made at once, at least: the sum, words of noise, noise,
# their total, and what a solver makes of it.
_N_COPIES = 8
# Fits of fewer columns take seconds, and are not worth a trial.
_MANY_COLUMNS = 4096
_LONG_SECONDS = 120.0


def check_release_cost(name: str, n_entries: int, there: float | None = None) -> None:
    """Refuse a release of so many numbers, a public size, that has no room.

    ValueError if its copies need more than the memory of the machine, or what is
    ``there``.
    """
    there = memory_bytes() if there is None else there
    if 8.0 * _N_COPIES * n_entries > there:
        raise ValueError(
            f"what {name} releases, {n_entries:,} numbers a time, must fit into "
            "memory, and does not. Pass fewer columns, classes or levels."
        )


def check_gram_cost(
    name: str, n_columns: int, n_outputs: int, remedy: str, *, intercept: bool = True
) -> None:
    """Refuse a fit whose Gram matrix has no room, and warn of one that takes minutes.

    By public sizes alone: of the records nothing counts, not their number either.
    ValueError if the matrices of the fit need more than the memory of the machine, or
    ``n_outputs`` rows of so many columns do.
    """
    bytes_each, there = 8.0 * n_columns**2, memory_bytes()
    check_release_cost(name, n_outputs * n_columns, there)
    most = math.isqrt(int(min(there, 2.0**80) / (8 * _N_MATRICES)))
    got = f"{n_columns:,}" + (" (with that of an intercept)" if intercept else "")
    if n_columns > most:
        raise ValueError(
            f"X must have at most {most:,} columns for {name}, got {got}: its Gram "
            f"matrix and what is made of it take "
            f"{_gib(_N_MATRICES * bytes_each)}, and there are {_gib(there)}. {remedy}"
        )
    if n_columns <= _MANY_COLUMNS:
        return
    from privfeat.solvers.spectrum import time_of_eigenvectors  # imports JAX

    seconds = time_of_eigenvectors(n_columns)
    if seconds >= _LONG_SECONDS:
        warn(
            f"X should have fewer columns for {name}, got {got}: eigenvectors of its "
            f"Gram matrix take up to "
            f"{seconds / 60.0:.0f} minutes here, and the fit takes at least "
            f"{_gib(_N_MATRICES * bytes_each)}. {remedy}",
            UserWarning,
        )


def _gib(size: float) -> str:
    return f"{size / 2**30:.1f} GiB"
