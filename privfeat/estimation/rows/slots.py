"""Where records stand in a fit that clips sums of users: side by side."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privfeat.estimation.inputs import Users

if TYPE_CHECKING:
    from privfeat.core.noise.keys import KeyStream
    from privfeat.core.sums.processes import Team


@dataclass(frozen=True)
class Slots:
    """Where the records of a fit stand, if sums of users are clipped. Sensitive."""

    # of each slot the record and its user, -1 for an empty one
    records: NDArray[np.int64]
    users: NDArray[np.int64]
    max_group_size: int  # how many records of a user count


def counted_records(
    users: Users, keys: "KeyStream", team: "Team", *, clips: bool
) -> tuple[NDArray[np.bool_], Slots | None]:
    """Return which records count, and the slots of a fit that ``clips`` users.

    The same in all processes.
    """
    chosen_by = np.array(keys.draw_integer(), np.uint64).view(np.int64)
    kept = users.kept_records(int(team.from_first(chosen_by).view(np.uint64)))
    slots = slots_of(users.ids, kept, users.max_group_size) if clips else None
    if team.size > 1:
        # who has which slot decides which process reads a record
        places = () if slots is None else (slots.records, slots.users)
        content = b"".join(array.tobytes() for array in (kept, *places))
        team.check_same("groups", content)
    return kept, slots


def slots_of(ids: NDArray[Any], kept: NDArray[np.bool_], max_group_size: int) -> Slots:
    """Return a place for each record that counts, by the user of each record.

    A user has as many slots as the next power of two, and those with the most come
    first. So the slots of no user cross a multiple of a power of two that is at least
    the number of that user's slots.
    """
    records = np.flatnonzero(kept)
    _, codes, counts = np.unique(ids[records], return_inverse=True, return_counts=True)
    by_user = np.argsort(codes, kind="stable")
    records, codes = records[by_user], codes[by_user]
    widths = 1 << np.frexp(counts - 0.5)[1].astype(np.int64)
    order = np.argsort(-widths, kind="stable")
    starts = np.empty_like(widths)
    starts[order] = np.cumsum(widths[order]) - widths[order]
    ranks = np.arange(len(codes)) - (np.cumsum(counts) - counts)[codes]
    of_slots = np.full((2, int(widths.sum())), -1)
    of_slots[:, starts[codes] + ranks] = records, codes
    return Slots(of_slots[0], of_slots[1], max_group_size)
