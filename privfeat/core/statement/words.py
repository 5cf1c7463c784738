"""A privacy statement in words and numbers, for people."""

import math
from typing import TYPE_CHECKING

from privfeat._types import Adjacency, Arithmetic, Unit
from privfeat.core.accounting.rounding import rounded_down, rounded_up

if TYPE_CHECKING:
    from privfeat.core.statement.privacy_statement import PrivacyStatement

_METHODS = {
    "exact": "exact curve of the composed Gaussian mechanism (Balle & Wang 2018)",
    "zcdp": "zCDP, epsilon = rho + 2 sqrt(rho ln(1/delta)) (Bun & Steinke 2016)",
    "pld": "privacy loss distribution (dp-accounting)",
    "selection": "privacy profile of the best of a random number of Gaussian runs",
}
_NOISE: dict[Arithmetic, str] = {
    "float64": "Gaussian noise",
    "exact": "discrete Gaussian noise on whole sums, arithmetic='exact'",
}
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


def words(statement: "PrivacyStatement") -> str:
    """Return the statement as lines of text; costs are rounded up."""
    if math.isinf(statement.epsilon):
        return "No privacy: epsilon is infinite, no noise was added."
    lines = [
        f"Differential privacy: epsilon = {rounded_up(statement.epsilon)}, "
        f"delta = {rounded_up(statement.delta, 3)}"
    ]
    if statement.mu is not None and statement.rho is not None:
        lines.append(
            f"  also: mu = {rounded_up(statement.mu)} (GDP), "
            f"rho = {rounded_up(statement.rho)} (zCDP)"
        )
    lines += [
        f"  unit: {statement.unit}",
        f"  neighbours: {statement.adjacency} "
        f"({_NEIGHBOURS[statement.unit, statement.adjacency]})",
        f"  accounting: {statement.accounting}, {_METHODS[statement.accounting]}",
    ]
    if statement.selection is not None:
        lines += statement.selection.lines()
    lines += [
        f"  releases ({_NOISE[statement.arithmetic]}; stddev = noise multiplier x L2 "
        "sensitivity):",
    ]
    lines += [
        f"    {record.count} x {record.name}: noise multiplier "
        f"{rounded_down(record.noise_multiplier)}, "
        f"L2 sensitivity {record.l2_sensitivity:.6g}"
        + (f", sampling {record.sampling_prob:g}" if record.sampling_prob < 1 else "")
        for record in statement.releases
    ]
    lines += ["  assumed public:", *(f"    - {fact}" for fact in statement.public)]
    if statement.seeded:
        lines.append(
            "  SEEDED: not private against anyone who knows or guesses the seed."
        )
    lines.append(f"  privfeat {statement.version}")
    return "\n".join(lines)
