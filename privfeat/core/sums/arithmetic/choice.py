"""Which arithmetic of a chunk a process uses, and how."""

from typing import Any

import jax

from privfeat.core.sums.arithmetic import host, kernels, slices, sparse
from privfeat.core.sums.records import Rows


def arithmetic(of_sparse_rows: bool = False) -> Any:
    """Return the module with the arithmetic of a chunk for the devices of a process."""
    if of_sparse_rows:
        return sparse
    return host if jax.default_backend() == "cpu" else kernels


def of_rows(rows: Rows) -> tuple[Any, dict[str, Any]]:
    """Return the module for these rows, and what its functions take beside others."""
    module = arithmetic(rows.sparse)
    return module, {"sliced": sliced(rows)} if module is kernels else {}


def sliced(rows: Rows) -> bool:
    """Return whether products are made of slices: of whole numbers alone."""
    return rows.step is not None and slices.uses_slices()
