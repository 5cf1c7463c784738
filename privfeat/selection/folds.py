"""Folds of which one record moves itself alone, so that composition covers the fits."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import BaseCrossValidator

from privfeat._checks import check_int, check_order
from privfeat._messages import list_of, without_data
from privfeat.core.callers.folds import uncovered_choice
from privfeat.core.callers.marked_rows import covered_rows
from privfeat.core.callers.stack import callers, rows_of_callers
from privfeat.core.noise.keys import KeyStream
from privfeat.data.users import ROUNDED, check_exact, user_of
from privfeat.estimation.inputs import check_given
from privfeat.selection.ahead import look_ahead


class HashKFold(BaseCrossValidator):
    """K folds for cross-validation of private fits: one record moves no other.

    Each record is dealt into a fold on its own, by a keyed hash of its id. Folds of
    scikit-learn are dealt by place or by label, where one record more can move many
    others; a ledger refuses fits in them.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, in [2, 1000]. Default: 5, as in scikit-learn.
    key : int, optional
        Public, in [0, 2**128): the same key and ids give the same folds. Default: None,
        which draws a fresh secret key for every ``split``, since nobody can then choose
        ids by their fold.

    Notes
    -----
    **Ids.** ``groups`` of ``split``, and of ``fit`` of a scikit-learn search, are the
    ids: whole numbers, strings or bytes, one for each record, such as file names or
    patient numbers; records of one id share a fold. An id must belong to its record
    whatever the other records are: no row numbers, no ranks, such as the ``groups`` of
    feature files from ``privfeat-extract``. Without a ``key`` ranks do no harm: under a
    fresh secret key a number says nothing of the fold. Under replace-one the list of
    ids is public, and a record that replaces another takes its id. Without ``groups``
    every record is dealt at random; ``key`` must be None then.

    **Sizes** are random. A fold may be empty, which is likely only with a handful of
    ids, such as persons: scikit-learn then warns and scores NaN, and a search with a
    ledger is refused.

    **Guarantee.** Fits in these folds compose as if each used the whole data set: a
    search of ``c`` candidates, each ``mu``-GDP, costs at most ``sqrt(c n_splits) mu``,
    and ``sqrt(c n_splits + 1) mu`` with ``refit``. The ledger charges this, and
    `search_cost` says it. (A record is in only ``n_splits - 1`` of the training sets;
    charges, made one by one, cannot count on the others.) The same holds for users,
    for fits that protect users.

    *Proof.* With ids, the training set of a split is the records whose hash is not the
    number of the split: a rule for each record on its own. So for neighbouring data
    sets, which differ in one record (or user), the training sets differ in the same one
    or are equal, and a fit costs the data set at most what it costs its training set.
    Without ids, let each slot of the list that is a data set have the hash of its place
    among the records, under a key that nobody knows: independent uniform coins. Couple
    neighbours by giving all common records the same coins: given the coins the above
    holds, and averaging over coins that stay secret increases no cost. (A public key
    would not do: under add/remove a record more shifts the places of others.)

    **Not covered.** The scores: exact counts of private records, as is what is selected
    by them, with a ledger too; a search in these folds warns. `DPRandomizedSearch` is
    private as a whole.

    **Users.** A search of scikit-learn keeps ``groups`` for the folds. Its fits protect
    users, not records, only if it hands them on, and warns otherwise where ids repeat::

        sklearn.set_config(enable_metadata_routing=True)
        clf = DPFC(max_group_size=4).set_fit_request(groups=True)
        GridSearchCV(clf, grid, cv=HashKFold(5)).fit(X, y, groups=patients)

    Examples
    --------
    >>> import numpy as np
    >>> from privfeat import HashKFold
    >>> ids = ["ann", "bob", "ann", "eve", "dan"]
    >>> for train, test in HashKFold(2, key=4).split(np.zeros((5, 3)), groups=ids):
    ...     print(train, test)
    [1 4] [0 2 3]
    [0 2 3] [1 4]
    """

    # scikit-learn's metadata routing: hand groups on without being asked
    __metadata_request__split = {"groups": True}  # noqa: RUF012 - as scikit-learn does

    def __init__(self, n_splits: int = 5, *, key: int | None = None) -> None:
        self.n_splits = check_int("n_splits", n_splits, low=2, high=1000)
        self.key = (
            None if key is None else check_int("key", key, low=0, high=2**128 - 1)
        )

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        return self.n_splits

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Return the row numbers of each training set and of its test set, one by one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Only its length is used.
        y : object
            Not used.
        groups : array-like of shape (n_samples,), optional
            The id of each record, or of its user.

        Raises
        ------
        TypeError, ValueError
            If an id is no whole number, string or bytes, their number is not that of
            the records, or there is a ``key`` without ids, or with ids that count from
            0 or 1 without a gap, as row numbers and ranks do; or if sparse rows are
            not sorted, or have two entries in one place.
        BudgetExceededError
            In a search of scikit-learn, or `cross_val_score`: if the ledger of its fits
            cannot pay for all of them, the one on all records at its end included.
            Nothing was charged. Fits by ``noise_multiplier``, or of sampled records,
            are charged one by one without this question.
        Exception
            There, with a ledger: what a fit of all records would refuse of them. With
            ``error_score="raise"`` also what one of the candidates refuses.
        PrivacyError
            There, if their ledger does not cover the fits at all.

        Warns
        -----
        PrivacyWarning
            In a search of scikit-learn: of its exact scores; where ids repeat and the
            fits do not get them. That ids repeat is for the owner of the records.
        """
        n_samples = without_data(_count_rows, X)
        check_given(X, y, groups)  # the fits get rows that do not tell it
        check_order("groups", groups, X, y, *rows_of_callers())
        if groups is None and self.key is not None:
            raise ValueError(
                "key must be None without ids, got a key. Pass the ids of the records "
                "as groups."
            )
        if not getattr(X, "has_canonical_format", True):
            raise ValueError(
                "X must have sorted rows, and one entry in each place, got other "
                "sparse rows. Call X.sum_duplicates() before."
            )
        check_exact(groups)
        ids = range(n_samples) if groups is None else list_of("groups", groups)
        if len(ids) != n_samples:
            raise ValueError(
                "groups must hold one id for each record, got another size."
            )
        # A float is refused: one missing id makes floats of a column of whole numbers,
        # and their text is another.
        if any(
            isinstance(i, bool) or not isinstance(i, Integral | str | bytes)
            for i in ids
        ):
            raise TypeError(
                "groups must hold whole numbers, strings or bytes, got another type. "
                "Pass one id for each record, none missing."
            )
        known = without_data(lambda: [_text(one) for one in ids])
        texts = [text for text in known if text is not None]
        if "" in texts:  # which "NA" is as well, unless one record has a word
            raise ValueError("groups must hold an id for each record, got none.")
        if len(texts) < n_samples:
            raise ValueError(ROUNDED)
        if self.key is None:
            key = KeyStream(None).draw_words(2).tobytes()
        elif _count_up({*texts}):
            raise ValueError(
                "groups must be ids that records keep whatever the others are, with a "
                "key, got numbers that count from 0 or 1, as row numbers and ranks do, "
                "which one record more shifts. Pass key=None."
            )
        else:
            key = self.key.to_bytes(16)
        folds = np.array([_fold_of(text, self.n_splits, key) for text in texts], int)
        # asked here and not where folds are fitted, perhaps in another process
        covered = uncovered_choice("replace_one") is None
        if covered:  # else the fits warn, or are refused
            empty = len({*folds.tolist()}) < self.n_splits
            repeated = len({*texts}) < n_samples
            look_ahead(self.n_splits, repeated=repeated, empty=empty)
        around = [caller.frame.f_locals for caller in callers("sklearn")]
        # what returns the folds may have others fit on them later
        seen = any(around) and not any(known.get("return_indices") for known in around)
        marked = partial(covered_rows, seen=seen) if covered else np.array
        return self._folds(folds, marked)

    def _folds(
        self, folds: NDArray[np.int64], marked: Callable[..., NDArray[np.int64]]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        for fold in range(self.n_splits):
            test = folds == fold
            yield marked(np.flatnonzero(~test)), np.flatnonzero(test)


def _count_rows(X: Any) -> int:
    return int(X.shape[0] if hasattr(X, "shape") else len(X))


def _text(one: Any) -> str | None:
    """Return an id as a text: 3, "3", b"3", "003", "3.0" and "0x3" are one.

    Readers of tables make them so, unless one record has a gap, or a letter. None for a
    number that was rounded or shortened; "" for what stands for no id.
    """
    if isinstance(one, bytes):
        one = bytes.decode(one, errors="surrogateescape")
    if not isinstance(one, str):
        return str(int(one))
    try:
        name = user_of(one)
    except ValueError:
        return None
    for base in (10, 16 if "x" in name.lower() else 10):
        with suppress(ValueError):
            number = int(name, base)
            # of a longer one in hexadecimal digits some make a negative number
            return str(number) if base == 10 or abs(number) < 2**63 else None
    return name


def _count_up(texts: set[str]) -> bool:
    """Return whether the ids, if more than a few, are 0, 1, ... or 1, 2, ..."""
    return len(texts) > 9 and any(
        texts == {*map(str, range(first, first + len(texts)))} for first in (0, 1)
    )


def _fold_of(text: str, n_splits: int, key: bytes) -> int:
    content = text.encode(errors="surrogatepass")
    digest = hashlib.blake2b(content, digest_size=16, key=key).digest()
    return int.from_bytes(digest) % n_splits  # uneven by less than 2**-118
