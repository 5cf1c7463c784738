"""What ``fit`` is given, checked: rows, labels, seeds, and the users of records."""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from numbers import Integral
from typing import Any

import numpy as np
from numpy.random import RandomState  # noqa: TID251
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn import config_context
from sklearn.utils import check_array, get_tags
from sklearn.utils.validation import check_consistent_length, validate_data

from privfeat._checks import check_order
from privfeat._messages import array_of, check_columns, without_data
from privfeat._rewording import SPARSE
from privfeat._warnings import warn
from privfeat.core.callers.stack import given_to_callers, rows_of_callers
from privfeat.data import LazyFeatures
from privfeat.data.users import ids_of
from privfeat.estimation.names import check_names
from privfeat.exceptions import PrivacyError

# What a feature file says of its rows, and why no statement covers them then.
_CHOSEN = {
    "limited": "X holds the first records of its data set alone (--limit): one record "
    "less lets another one in, which no statement covers. Extract all of them",
    "chosen_by": "X lacks the near-duplicates of other records (overlap --remove): one "
    "of those moves many rows, which no statement covers. Pass the whole file",
}
_FLOATS = (np.float64, np.float32, np.float16)


def validated(
    estimator: Any, X: Any, y: Any, groups: ArrayLike | None
) -> tuple[Any, Any, "Users | None"]:
    """Return rows and targets as arrays, or a feature file unread, and the users.

    Sets ``n_features_in_``, and ``feature_names_in_`` where columns have names.
    """
    as_given = X, y
    (_, names), classes = check_columns(X=X, y=y), getattr(estimator, "classes", None)
    if len(names) > 1 and classes is not None:
        given = np.asarray(classes).tolist()
        named = all(isinstance(name, str) for name in names)
        if names != given and (named or {*names} == {*given}):
            raise ValueError(
                f"classes must be the columns of y in their order, got {given!r} for "
                f"{names!r}."
            )
    y = array_of(y) if isinstance(y, list | tuple) else y  # none makes texts of all
    if isinstance(X, LazyFeatures):
        y = checked(
            check_array,
            y,
            accept_sparse="csr",
            dtype=None,
            ensure_2d=False,
            ensure_min_samples=0,
            input_name="y",
        )
        without_data(check_consistent_length, X, y)
        if not y.shape[0]:
            raise ValueError("X must have at least 1 row, got 0.")
        estimator.n_features_in_ = X.shape[1]
        vars(estimator).pop("feature_names_in_", None)  # of an earlier fit
    else:
        X, y = read_rows(estimator, X, y=y, multi_output=True)
    if (columns := getattr(estimator, "feature_names_in_", None)) is not None:
        check_names(estimator.get_params(deep=False), columns)
    most, ledger = estimator.max_group_size, estimator.ledger
    return X, y, check_users(groups, most, X.shape[0], *as_given, ledger=ledger)


def known_features(estimator: Any) -> str:
    """Return which public fact `validated` took from the columns of X, if any."""
    if not hasattr(estimator, "n_features_in_"):  # texts, which a first step hashes
        return "which columns the first step reads"
    names = " and the names" if hasattr(estimator, "feature_names_in_") else ""
    return f"the number{names} of features ({estimator.n_features_in_})"


def read_rows(estimator: Any, X: Any, **options: Any) -> Any:
    """Return what ``validate_data`` makes of rows; sparse ones are copied and checked.

    TypeError if they are sparse, and the estimator takes no such rows.
    """
    accepted: str | bool = issparse(X) and "csr"
    if accepted:
        if not get_tags(estimator).input_tags.sparse:
            raise TypeError(SPARSE)
        from privfeat.core.bounds.sparse import canonical_rows  # imports JAX

        X = canonical_rows(X)
    return checked(
        validate_data,
        estimator,
        X,
        dtype=floats_of(X),
        accept_sparse=accepted,
        **options,
    )


def floats_of(X: Any) -> Any:
    """Return the types of numbers that rows keep: any float, but in a table float64.

    A table has a type for each column, which one record decides for all others, and so
    how they are rounded. An array has the type that somebody gave it.
    """
    return np.float64 if is_table(X) else _FLOATS


def is_table(X: Any) -> bool:
    """Return whether records have a type for each column, as tables have."""
    if isinstance(X, np.ndarray):
        return False
    return any(without_data(hasattr, X, name) for name in ("columns", "dtypes"))


def array_of_records(records: Any) -> NDArray[Any]:
    """Return records as an array; a list of them as one of bytes, or of float64.

    Not of the type of the widest, as NumPy has it: one record would change all others.
    A table of numbers becomes float64 for the same reason (`floats_of`). Images of
    other whole numbers, and what is no number, keep their type. TypeError if some
    records of a list are bytes and some are not.
    """
    listed = isinstance(records, list | tuple)
    texts = listed and any(isinstance(record, str) for record in records)
    found = array_of(records, object if texts else None)  # not of the longest text
    if found.dtype.kind in "US" and listed:
        found = array_of(records, object)  # a number beside texts stays one
    if listed and len({array_of(record).dtype == np.uint8 for record in records}) > 1:
        raise TypeError(
            "X must hold records of one type, got bytes (uint8) beside others. Convert "
            "all to one."
        )
    numbers = found.dtype.kind == "f" or (found.dtype.kind in "biu" and found.ndim < 3)
    as_stored = not listed or found.dtype == np.uint8
    if not numbers or (as_stored and not is_table(records)):
        return found
    return found.astype(np.float64)


def checked(check: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Return what a check of scikit-learn returns, `without_data`.

    It looks for NaN even if scikit-learn is told to ``assume_finite``: a charged fit
    would meet them. Of tensors it makes arrays of NumPy, also if that keeps tensors.
    """
    with config_context(assume_finite=False, array_api_dispatch=False):
        return without_data(check, *args, **options)


def seed_of(random_state: Any) -> int | None:
    """Return a seed for the key stream, or None for operating-system entropy.

    ``random_state`` must be None, an integer in ``[0, 2**64)``, or a RandomState; else
    TypeError or ValueError.
    """
    if random_state is None:
        return None
    if isinstance(random_state, Integral) and not isinstance(random_state, bool):
        seed = int(random_state)
        if not 0 <= seed < 2**64:
            raise ValueError(f"random_state must be in [0, 2**64), got {seed!r}.")
        return seed
    if not isinstance(random_state, RandomState):
        raise TypeError(
            "random_state must be None, an integer in [0, 2**64) or a RandomState, got "
            f"{random_state!r}."
        )
    words = random_state.randint(0, 2**16, size=4)
    return sum(int(word) << 16 * place for place, word in enumerate(words))


@dataclass(frozen=True)
class Users:
    """Whose the records are."""

    ids: NDArray[Any]  # the user of each record, (n_samples,); sensitive
    max_group_size: int  # how many records of a user count

    @property
    def n_users(self) -> int:
        """How many there are. Sensitive."""
        return len(set(self.ids.tolist()))

    def kept_records(self, key: int) -> NDArray[np.bool_]:
        """Return which records count, of shape (n_samples,), at random.

        ``key`` is fresh 64 bits, drawn apart from the data. A user's records are ranked
        by a keyed hash of the user and of the record's place among the user's own, and
        the first ones count. Records of other users play no part, as the proof of
        ``core.bounds.sensitivity.per_user`` has it.
        """
        users, codes, counts = np.unique(
            self.ids, return_inverse=True, return_counts=True
        )
        order, ends = np.argsort(codes, kind="stable"), np.cumsum(counts)
        secret = key.to_bytes(8, "big")
        kept = np.ones(len(codes), bool)
        for user in np.flatnonzero(counts > self.max_group_size):
            name = str(users[user]).encode(errors="surrogatepass")
            ranks = [
                blake2b(b"%d:%b" % (place, name), key=secret, digest_size=8).digest()
                for place in range(counts[user])
            ]
            own = order[ends[user] - counts[user] : ends[user]]
            kept[own[np.argsort(ranks)[self.max_group_size :]]] = False
        return kept


def check_users(
    groups: ArrayLike | None,
    max_group_size: int | None,
    n_samples: int,
    X: Any = None,
    y: Any = None,
    *,
    ledger: Any = None,
) -> Users | None:
    """Return whose the records are, or None where each is protected on its own.

    ``X`` and ``y`` are None where there are none. ``ledger``: what is charged, if
    anything is.

    ValueError if only one of ``groups`` and ``max_group_size`` is given, there is not
    one user for each record, or pandas has users or labels in another order.
    """
    check_given(X, y, groups, ledger)
    if groups is None and max_group_size is None:
        return None
    if max_group_size is None:
        raise ValueError(
            "max_group_size must be given together with groups, got None. Pass the "
            "number of records of a user that shall count."
        )
    if groups is None:
        raise ValueError(
            f"groups must be given together with max_group_size={max_group_size!r}, "
            "got None. Pass the user of each record to fit (dpfc__groups= in a "
            "pipeline); a search of scikit-learn hands them on after sklearn.set_config"
            "(enable_metadata_routing=True) and set_fit_request(groups=True)."
        )
    ids = ids_of(groups)
    if len(ids) != n_samples:
        raise ValueError("groups must hold one user for each row of X.")
    check_order("groups", groups, X, y, *rows_of_callers())
    return Users(ids, int(max_group_size))


def check_given(X: Any, y: Any, groups: ArrayLike | None, ledger: Any = None) -> None:
    """Refuse, or warn of, what is known of rows and labels and the caller forgot.

    Also where a step of a pipeline, or a search, made an array of such rows before.

    Labels of pandas in another order than the rows are refused (`check_labels`). That a
    feature file says whose each row is, without ``groups``, is a warning: to protect
    each row by itself is a choice, and the statement names it. The first rows alone of
    a data set are refused with a ``ledger``, by PrivacyError: one record less lets
    another one in, and neighbouring data sets differ in two rows or, of users, in many.
    So are rows whose near-duplicates to other records were left out: one of those
    moves many rows. Without a ledger there is a warning: all may be public.
    """
    given = check_labels(y, X)
    if groups is None and any(getattr(r, "has_groups", False) is True for r in given):
        warn(
            "X is of a file that says whose each row is, but groups is None: each row "
            "is protected on its own, not all rows of a user. Pass groups=split.groups "
            "(to a pipeline as STEP__groups) and max_group_size."
        )
    files = [rows for rows in given if isinstance(rows, LazyFeatures)]
    for attribute, what in _CHOSEN.items():
        if any(getattr(rows, attribute) for rows in files):
            if ledger is not None:
                raise PrivacyError(f"{what}, to fit or measure for a charge.")
            warn(f"{what} before something is released.")


def check_labels(y: Any, X: Any) -> list[Any]:
    """Raise ValueError if labels of pandas have the index of X in another order.

    Or if those have that scikit-learn was given, which has cut both since. Return X and
    the rows that scikit-learn was given.
    """
    given = [(X, y), *given_to_callers()]
    for rows, labels in given:
        check_order("y", labels, rows)
        check_order("y", y, rows)
    return [rows for rows, _ in given]
