"""From an exact sum to a `Release`: the Gaussian mechanism, held to a plan."""

from collections import Counter
from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float64

from privfeat._checks import check_choice
from privfeat._types import ARITHMETICS, Arithmetic
from privfeat.core.accounting.plan import ReleasePlan
from privfeat.core.noise import discrete, draws
from privfeat.core.noise.correlated import CorrelatedNoise
from privfeat.core.noise.exact import noisy_total
from privfeat.core.noise.keys import KeyStream
from privfeat.core.noise.observation import OBSERVER, Sampler, not_left_out
from privfeat.core.noise.release import Release
from privfeat.core.sums.devices import check_settings
from privfeat.core.sums.processes import current_team
from privfeat.core.sums.totals import ExactSum
from privfeat.exceptions import PrivacyError


class GaussianMechanism:
    """Draws the releases of one plan, each no more often than planned.

    Only `private_fit` makes one. Every release calls ``charge`` before it draws. With
    ``arithmetic="exact"`` the noise is discrete, on the grid of the sums (``exact``).
    Settings that make products less exact are refused (`devices.check_settings`).

    Attributes
    ----------
    noise_stddevs : dict of float
        Stddev of the noise in a release, by the name of its query, in its units.

    **Guarantee.** Suppose that the ``n_blocks`` sums of one release, stacked, move by
    at most its query's ``l2_sensitivity`` between neighbours, given the earlier
    releases, and that the caller releases each block once. Then all releases together
    satisfy the guarantee of ``plan``: no query is drawn more often than it counts.
    """

    def __init__(
        self,
        plan: ReleasePlan,
        keys: KeyStream,
        arithmetic: Arithmetic,
        charge: Callable[[], None],
    ) -> None:
        self._private, self._charge = plan.private, charge
        if self._private:
            check_settings()
        self._keys, self._team = keys, current_team()
        self._exact = check_choice("arithmetic", arithmetic, ARITHMETICS) == "exact"
        self.noise_stddevs = {each.name: each.noise_stddev for each in plan.records}
        self._sampling = {each.name: each.sampling_prob for each in plan.records}
        queries = [release.query for release in plan.releases]
        self._counts = {q.name: q.count * q.n_blocks for q in queries}
        self._blocks_left = Counter(self._counts)
        self._clipped = {q.name for q in queries if q.clipped}
        self._correlated = {
            q.name: CorrelatedNoise(q.strategy)
            for q in queries
            if q.strategy is not None
        }
        if self._correlated and (self._exact or self._team.size > 1):
            raise PrivacyError(
                "correlated noise must be of arithmetic='float64', in one process."
            )

    def release(
        self, name: str, exact: ExactSum, *, symmetric: bool = False
    ) -> Release:
        """Return ``exact`` plus noise: one block of the query ``name`` of the plan.

        The sum of a ``symmetric`` matrix gets symmetric noise, which is less off the
        diagonal. Of several processes each passes its own sum; the first adds the noise
        for all.

        Raises
        ------
        PrivacyError
            If the plan does not hold (any more of) this query, if the sum is not
            finite although records are bounded, not symmetric although it is called so,
            or if users add more to it than was planned. Nothing is drawn.
        """
        if self._blocks_left[name] <= 0:
            raise PrivacyError(
                f"{name} must be released as often as planned, not more. The plan has "
                f"{', '.join(self.noise_stddevs)}."
            )
        stddev, team = self.noise_stddevs[name], self._team
        if team.size > 1:
            exact = exact.over(team, f"sum of {name}")
        if self._private and name in self._clipped and exact.users is None:
            raise PrivacyError(
                f"the sum of {name} must be clipped by user, as its noise was planned. "
                "Use a sum of privfeat.core.sums.statistics, or another name, or "
                "user_bound='count'."
            )
        if self._private and not 0.0 < stddev < np.inf:
            raise PrivacyError(f"the noise of {name} must be finite and > 0.")
        if self._private and not np.all(np.isfinite(exact.value)):
            raise PrivacyError(f"the exact sum of {name} must be finite.")
        if self._private and symmetric and not _is_symmetric(exact.value):
            raise PrivacyError(f"the exact sum of {name} must be a symmetric matrix.")
        self._charge()  # at every release, in each process; the first one pays
        self._blocks_left[name] -= 1
        if stddev == 0.0 or team.index > 0:
            value = exact.value.copy()
        elif self._exact:
            value = noisy_total(self._keys, exact, stddev, symmetric=symmetric)
        else:
            key, shape = self._keys.draw_noise_key(), exact.value.shape
            if symmetric:
                value = draws.symmetric_gaussian(key, shape[0], stddev)
            else:
                value = draws.gaussian(key, shape, stddev)
            if name in self._correlated:
                value = self._correlated[name].next(value)
                stddev *= self._correlated[name].stddev
            value += exact.value
        if team.size > 1:
            value = team.from_first(value, f"release of {name}", exact.grid_step)
        value.setflags(write=False)
        release, observer = Release(name, value, stddev, symmetric), OBSERVER.get()
        return release if observer is None else observer(exact, release)

    def count_as_drawn(self, name: str, count: int) -> None:
        """Count releases of ``name`` that an interrupted run of the fit has drawn.

        Both runs together draw no more than the plan counts: to count more is a
        PrivacyError.
        """
        if not 0 <= count <= self._blocks_left[name]:
            raise PrivacyError(
                f"the releases of {name} that were drawn must be at most "
                f"{self._blocks_left[name]}, as planned, got {count!r}."
            )
        self._blocks_left[name] -= count
        self.restart(name)

    def restart(self, name: str) -> None:
        """Begin a stretch (``strategy``) of a query whose noise is correlated.

        Nothing has to be kept of releases before it by who goes on with the fit. It is
        a PrivacyError within a cycle of turns.
        """
        correlated = self._correlated.get(name)
        if correlated is None:
            return
        if self._drawn(name) % correlated.strategy.bands:
            raise PrivacyError(
                f"correlated noise of {name} must begin anew after a multiple of "
                f"{correlated.strategy.bands} releases, got {self._drawn(name)}."
            )
        correlated.restart()

    def whole_cycles(self, name: str, count: int) -> int:
        """Return ``count``, rounded up to releases after which `restart` may be."""
        correlated = self._correlated.get(name)
        bands = 1 if correlated is None else correlated.strategy.bands
        return -(-count // bands) * bands

    def _drawn(self, name: str) -> int:
        """Return how many releases of a query of one block were drawn."""
        return self._counts[name] - self._blocks_left[name]

    def sampler(self, name: str) -> Sampler | None:
        """Return the Poisson sampler of the query ``name``; None for all records.

        It maps a number of records to a fresh mask, with the probability of the plan:
        what is accounted is what is drawn, but rounded in float64 as `Query` says.
        Where noise is correlated, records take turns.
        """
        probability, correlated = self._sampling[name], self._correlated.get(name)

        def sample(n: int) -> Bool[np.ndarray, " n"]:
            if self._exact:
                return discrete.bernoulli(self._keys, n, probability)
            return draws.bernoulli(self._keys.draw_noise_key(), n, probability)

        def sample_in_turn(n: int) -> Bool[np.ndarray, " n"]:
            assert correlated is not None  # as below
            turns = correlated.whose_turn(self._keys, n, self._drawn(name))
            return np.asarray(sample(n) & turns)

        if correlated is not None:
            return not_left_out(sample_in_turn)
        return not_left_out(sample if probability < 1.0 else None)

    def check_complete(self) -> None:
        """Raise `PrivacyError` unless exactly the planned releases were drawn."""
        left = {name: count for name, count in self._blocks_left.items() if count}
        if left:
            raise PrivacyError(f"all planned releases must be drawn, left: {left}.")


def _is_symmetric(value: Float64[np.ndarray, "..."]) -> bool:
    return value.ndim == 2 and np.array_equal(value, value.T)
