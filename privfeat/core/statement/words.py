"""A privacy statement in words and numbers, for people."""

import math
from collections.abc import Sequence

from privfeat._types import Adjacency, Arithmetic, Unit
from privfeat.core.accounting.plan import ReleaseRecord
from privfeat.core.statement.rounding import rounded_down, rounded_up
from privfeat.core.statement.selection import Selection

_METHODS = {
    "exact": "exact curve of the composed Gaussian mechanism (Balle & Wang 2018)",
    "zcdp": "zCDP, epsilon = rho + 2 sqrt(rho ln(1/delta)) (Bun & Steinke 2016)",
    "pld": "privacy loss distribution (dp-accounting)",
    "rdp": "Rényi divergences, whole and fractional orders (dp-accounting)",
    "selection": "privacy profile of the best of a random number of Gaussian runs",
}
_NOISE: dict[Arithmetic, str] = {
    "float64": "Gaussian noise",
    "exact": "discrete Gaussian noise on whole sums, arithmetic='exact'",
}
_BANDED = " of a record in its turn, one release in {}; banded noise"
_NEIGHBOURS: dict[tuple[Unit, Adjacency], str] = {
    ("record", "add_remove"): "one record is present in one data set and absent from "
    "the other",
    ("record", "replace_one"): "one record is replaced by another; their number is "
    "public",
    ("user", "add_remove"): "all records of one user are present in one data set and "
    "absent from the other",
    ("user", "replace_one"): "all records of one user are replaced by others; the "
    "number of users is public",
}


def words(
    *,
    epsilon: float,
    delta: float,
    rho: float | None,
    mu: float | None,
    adjacency: Adjacency,
    accounting: str,
    releases: Sequence[ReleaseRecord],
    public: Sequence[str],
    seeded: bool,
    version: str,
    selection: Selection | None,
    unit: Unit,
    arithmetic: Arithmetic,
    charge: str | None,
) -> str:
    """Return a statement as lines of text; costs are rounded up.

    The parameters are the fields of `PrivacyStatement`, all of them: a field that is
    added there, and not here, is an error as soon as a statement is printed.
    """
    if math.isinf(epsilon):
        return "No privacy: epsilon is infinite, no noise was added."
    lines = [
        f"Differential privacy: epsilon = {rounded_up(epsilon)}, "
        f"delta = {rounded_up(delta, 3)}"
    ]
    if mu is not None and rho is not None:
        lines.append(
            f"  also: mu = {rounded_up(mu)} (GDP), rho = {rounded_up(rho)} (zCDP)"
        )
    lines += [
        f"  unit: {unit}",
        f"  neighbours: {adjacency} ({_NEIGHBOURS[unit, adjacency]})",
        f"  accounting: {accounting}, {_METHODS[accounting]}",
    ]
    if selection is not None:
        lines += selection.lines()
    lines += [
        f"  releases ({_NOISE[arithmetic]}; stddev = noise multiplier x L2 "
        "sensitivity):",
    ]
    lines += [
        f"    {record.count} x {record.name}: noise multiplier "
        f"{rounded_down(record.noise_multiplier)}, "
        f"L2 sensitivity {record.l2_sensitivity:.6g}"
        + (
            f", sampling {rounded_up(record.sampling_prob)}"
            if record.sampling_prob < 1
            else ""
        )
        + ("" if record.strategy is None else _BANDED.format(record.strategy.bands))
        for record in releases
    ]
    lines += ["  assumed public:", *(f"    - {fact}" for fact in public)]
    if seeded:
        lines.append(
            "  SEEDED: not private against anyone who knows or guesses the seed."
        )
    if charge is not None:
        lines.append(f"  charged to a ledger: {charge}")
    lines.append(f"  privfeat {version}")
    return "\n".join(lines)
