"""Several sums released as one query, because no two records move all of them most."""

from collections.abc import Mapping
from dataclasses import dataclass

from privfeat.core.accounting.plan import Query
from privfeat.core.noise.gaussian_mechanism import GaussianMechanism
from privfeat.core.noise.release import Release
from privfeat.core.sums.totals import ExactSum

# Part of rho that one Gram matrix gets, relative to class sums or a gradient.
GRAM_WEIGHT = 0.2
# The same in a stack, where it costs nothing: two records that move class sums or a
# gradient the most have opposite rows, hence equal outer products, which cancel.
STACKED_GRAM_WEIGHT = 0.25


@dataclass(frozen=True)
class Stack:
    """A query whose blocks are sums of different units, each times its scale.

    Attributes
    ----------
    query : Query
        Its sensitivity is that of all scaled blocks together.
    scales : mapping of name to float
        Of every part, > 0. Public.
    """

    query: Query
    scales: Mapping[str, float]

    def release(
        self,
        mechanism: GaussianMechanism,
        part: str,
        exact: ExactSum,
        *,
        symmetric: bool = False,
    ) -> Release:
        """Release a block of a part, scaled; return it in the units of the part."""
        scale = self.scales[part]
        block = mechanism.release(
            self.query.name, exact.scaled(scale), symmetric=symmetric
        )
        return block.unscaled(scale, part)

    def fact(self) -> str:
        """Return what a reader of the statement must know."""
        parts = [f"{scale:.6g} {name}" for name, scale in self.scales.items()]
        return f"that {self.query.name} stacks {', '.join(parts)}"
