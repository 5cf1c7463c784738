"""Whether public rows are the records of a fit, as far as that can be seen."""

from typing import Any

import numpy as np
from scipy.sparse import issparse

from privfeat._messages import array_of
from privfeat.data.lazy import LazyFeatures
from privfeat.data.reader import FeatureSplit


def check_apart(public: Any, X: Any) -> None:
    """Raise ValueError if both are one object, one memory or rows of one file.

    A copy, which ``clone`` makes as well, is not found.
    """
    own = public.X if isinstance(public, FeatureSplit) else public
    if own is X or _share(own, X):
        raise ValueError(
            "public must not be the records of the fit, got their file or memory. "
            "The guarantee does not cover public rows: pass others, in a copy."
        )


def _share(own: Any, X: Any) -> bool:
    n_files = isinstance(own, LazyFeatures) + isinstance(X, LazyFeatures)
    if n_files == 2:
        return bool(own.shares_rows(X))
    if n_files or issparse(own) or issparse(X):
        return False
    return bool(np.may_share_memory(array_of(own), array_of(X)))
