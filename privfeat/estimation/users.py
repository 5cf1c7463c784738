"""Records of the same user: how many of them count, and which."""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfeat._messages import list_of, without_data

# Objects that compare themselves could take two users for one.
_PLAIN: dict[type, Callable[[Any], Any]] = {
    Integral: int,
    str: str.__str__,
    bytes: bytes.__bytes__,
}


@dataclass(frozen=True)
class Users:
    """Whose the records are.

    Attributes
    ----------
    ids : array of shape (n_samples,)
        User of each record. Sensitive.
    max_group_size : int
        How many records of a user count.
    """

    ids: NDArray[Any]
    max_group_size: int

    def kept_records(self, key: int) -> NDArray[np.bool_]:
        """Return which records count, of shape (n_samples,), at random.

        Parameters
        ----------
        key : int
            Fresh 64 bits, drawn apart from the data.

        Notes
        -----
        A user's records are ranked by a keyed hash of the user and of the record's
        place among the user's own, and the first ones count. Records of other users
        play no part, as the proof of ``core.sensitivity.per_user`` has it.
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
    groups: ArrayLike | None, max_group_size: int | None, n_samples: int
) -> Users | None:
    """Return whose the records are, or None where each is protected on its own.

    Raises
    ------
    ValueError
        If only one of ``groups`` and ``max_group_size`` is given, or there is not one
        user for each record.
    """
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
            "got None. Pass the user of each record to fit."
        )
    ids = _ids(groups)
    if len(ids) != n_samples:
        raise ValueError("groups must hold one user for each row of X.")
    return Users(ids, int(max_group_size))


def _ids(groups: ArrayLike) -> NDArray[Any]:
    """Return the users as integers or as strings, each as given.

    An array of one NumPy type for all users would turn large integers beside small
    ones into floats and cut trailing zeros of strings: one user's name would then
    change which of the other users are told apart.

    Raises
    ------
    TypeError
        If they are not all integers, or all strings or bytes; for a mapping or a set,
        whose keys would pass for users of one record each.
    """
    given: Any = groups
    masked = isinstance(given, np.ma.MaskedArray)  # lists have None for what is
    if isinstance(given, np.ndarray) and given.ndim == 1 and not masked:
        if given.dtype.kind in "iu":
            return np.asarray(given)
    values = list_of("groups", given)
    for kind, plain in _PLAIN.items():
        if all(isinstance(value, kind) for value in values):
            ids = np.empty(len(values), object)
            ids[:] = without_data(list, map(plain, values))
            return ids
    raise TypeError(
        "groups must be one-dimensional and hold integers only or strings only, "
        "got another type or a missing value."
    )
