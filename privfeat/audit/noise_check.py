"""Whether the noise of a fit is as large as declared, and drawn anew each time."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from privfeat._checks import check_between
from privfeat.audit.copies import fit_copy
from privfeat.audit.recorder import Recorded, recording
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.exceptions import PrivacyError

_FEWEST = 4  # draws in a block whose correlation with others is tested
_MOST_BLOCKS = 3000


@dataclass(frozen=True)
class NoiseCheck:
    """Size of the noise of one query."""

    name: str
    n_draws: int
    ratio: float  # root mean square of the draws over the declared stddev
    p_value: float  # probability of draws as small as these


@dataclass(frozen=True)
class NoiseResult:
    """Noise of all queries.

    Attributes
    ----------
    checks : tuple of NoiseCheck
    p_repeated : float
        Probability of two blocks of draws (releases, or rows of one) as correlated as
        these.
    rate : float
        False-positive rate of ``ok``.
    """

    checks: tuple[NoiseCheck, ...]
    p_repeated: float
    rate: float

    @property
    def ok(self) -> bool:
        """Whether no test finds too little noise, or the same twice."""
        found = [self.p_repeated, *(check.p_value for check in self.checks)]
        # NaN, the p-value of draws that are no numbers, is not above the rate
        return all(p_value > self.rate / len(found) for p_value in found)

    def __str__(self) -> str:
        """Return a table, one line for each query."""
        lines = [f"{'release':<16}{'draws':>10}{'rms/declared':>14}{'p-value':>10}"]
        lines += [
            f"{check.name:<16}{check.n_draws:>10}{check.ratio:>14.4f}"
            f"{check.p_value:>10.2g}"
            for check in self.checks
        ]
        return "\n".join([*lines, f"{'no draw twice':<40}{self.p_repeated:>10.2g}"])


def check_noise(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    rate: float = 1e-6,
) -> NoiseResult:
    """Fit once and test what was added to every exact sum.

    Parameters
    ----------
    estimator : estimator of privfeat
        Unfitted, and left so. Its noise must not be turned off.
    X, y, groups : array-like
        What ``fit`` takes.
    rate : float
        False-positive rate over noise keys, in (0, 1), of all tests together.

    Notes
    -----
    **Power.** Half the noise makes the sum of ``n`` squares over the variance a quarter
    of a chi-square variable: at ``rate=1e-6`` it is found with probability above 0.99
    from 60 draws on. The same four draws or more for two classes, steps or releases
    have a correlation of one, and are always found.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from privfeat import DPLeastSquares
    >>> clf = DPLeastSquares(epsilon=1, classes=range(10))
    >>> check_noise(clf, *load_digits(return_X_y=True)).ok
    True
    """
    check_between("rate", rate, 0.0, 1.0)
    with recording() as recorder:
        audited = fit_copy(estimator, X, y, groups)
    if not hasattr(audited, "privacy_"):
        raise TypeError(
            "estimator must state what it costs, in privacy_, got "
            f"{type(audited).__name__} without. Pass what is private in it, or make it "
            "a PrivatePipeline."
        )
    calls = with_fresh_noise(audited.privacy_, recorder.calls)
    checks = noise_checks(audited.privacy_, calls)
    return NoiseResult(checks, repetition_p_value(calls), rate)


def with_fresh_noise(
    statement: PrivacyStatement, calls: Sequence[Recorded]
) -> list[Recorded]:
    """Return the calls with the independent noise that correlated noise is made of.

    That is ``z = C w`` (`privfeat.core.bounds.strategy`), of a fit in one run.
    """
    strategies = {record.name: record.strategy for record in statement.releases}
    past: dict[str, list[NDArray[np.float64]]] = {}
    found = []
    for call in calls:
        strategy = strategies.get(call.name)
        if strategy is not None:
            noises = [call.noise, *past.get(call.name, [])][: strategy.bands]
            past[call.name] = noises
            pairs = zip(strategy.coefficients, noises, strict=False)
            fresh = sum((part * noise for part, noise in pairs), start=0.0 * call.noise)
            release = replace(call.release, value=call.exact + fresh)
            call = replace(call, release=release)
        found.append(call)
    return found


def noise_checks(
    statement: PrivacyStatement, calls: Sequence[Recorded]
) -> tuple[NoiseCheck, ...]:
    """Return the tests of all queries that a fit released.

    PrivacyError if the statement lists nothing, no noise, or what was not released.
    """
    checks = []
    for record in statement.releases:
        named = [call for call in calls if call.name == record.name]
        stddev = record.noise_multiplier * record.l2_sensitivity
        if not (named and stddev > 0.0):
            raise PrivacyError(f"{record.name} must be released, with noise.")
        draws = np.concatenate([independent_draws(call) for call in named]) / stddev
        checks.append(
            NoiseCheck(
                record.name,
                len(draws),
                float(np.sqrt(np.mean(draws**2))),
                float(stats.chi2.cdf(np.sum(draws**2), df=len(draws))),
            )
        )
    if not checks:
        raise PrivacyError("a fit must release something to be tested.")
    return tuple(checks)


def independent_draws(call: Recorded) -> NDArray[np.float64]:
    """Return the draws of a release that are independent, at one stddev."""
    if not call.release.symmetric:
        return call.noise.ravel()
    lower = np.tril_indices(len(call.noise), -1)
    return np.concatenate([np.diag(call.noise), math.sqrt(2.0) * call.noise[lower]])


def repetition_p_value(calls: Sequence[Recorded]) -> float:
    """Return the p-value of the largest correlation of two blocks of draws.

    Blocks of one length are compared, at most 3,000: the first rows of all releases
    before their second rows. Under independence ``(1 + r) / 2`` has a beta distribution
    (as in ``scipy.stats.pearsonr``); the p-value counts all pairs (Bonferroni).
    """
    in_turn = itertools.zip_longest(*map(_blocks, calls), fillvalue=np.empty(0))
    rows = list(itertools.chain(*in_turn))
    n_pairs, smallest = 0, 1.0
    for length in {len(row) for row in rows if len(row) >= _FEWEST}:
        same = np.array([row for row in rows if len(row) == length][:_MOST_BLOCKS])
        pairs = np.triu_indices(len(same), 1)
        if len(same) < 2:
            continue
        n_pairs += len(pairs[0])
        gap = max(0.0, 1.0 - float(np.abs(np.corrcoef(same)[pairs]).max()))
        half = length / 2 - 1
        smallest = min(smallest, 2.0 * float(stats.beta.cdf(gap / 2, half, half)))
    return min(1.0, max(n_pairs, 1) * smallest)  # 1 where there is nothing to compare


def _blocks(call: Recorded) -> list[NDArray[np.float64]]:
    """Return parts of a release that are drawn apart: rows, if not symmetric."""
    if call.release.symmetric or call.noise.ndim < 2:
        return [independent_draws(call)]
    return list(call.noise.reshape(len(call.noise), -1))
