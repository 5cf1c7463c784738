"""Records of the same user: how many of them count, and which."""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import column_or_1d

from privfeat.linear._inputs import messages_without_data


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
            name = str(users[user]).encode()
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
    with messages_without_data():
        ids = check_array(groups, ensure_2d=False, dtype=None, input_name="groups")
        ids = column_or_1d(ids)
    if len(ids) != n_samples:
        raise ValueError("groups must hold one user for each row of X.")
    return Users(ids, int(max_group_size))
