"""Table 1 of Bu, Wang & Long 2023: what each kind of clipping does to kernel and loss.

The paper's "yes" is a guarantee. Here a property counts as held for a kind of clipping
if it does on three linear models of two or three records, each a counterexample to
another guarantee. Their kernels are positive definite, as Theorems 1 and 2 suppose, and
losses are squared errors. No noise is added: it does not change the flow (Fact 4.1).
"""

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from figures.ntk_decay import LossDecay, measure_decay
from figures.ntk_kernel import MatrixProperties, clipped_kernel

LARGE = 1e6  # no gradient is as long
_DECAYED = 1e-2  # what is left of a loss that went to zero
_STILL = 1e-3  # how far a loss that converged moves in the last tenth
COLUMNS = ("symmetric", "x'Ax >= 0", "eigenvalues >= 0", "converges", "monotone")
COLUMNS += ("to zero",)
# What Theorems 1 and 2 guarantee, in the order of `COLUMNS`. A linear model with flat
# clipping converges nevertheless: it follows a convex loss, Huber's for one output.
TABLE_1 = {
    "none": (True,) * 6,
    "batch, flat": (True,) * 6,
    "batch, layerwise": (True,) * 6,
    "large R, flat": (True,) * 6,
    "large R, layerwise": (True,) * 6,
    "small R, flat": (False, False, True, False, False, True),
    "small R, layerwise": (False,) * 6,
}


@dataclass(frozen=True)
class Problem:
    """What is clipped, as `clipped_kernel` takes it, and how long it is followed.

    Attributes
    ----------
    batch : tuple
        Function, parameters, records, targets and loss.
    clip_norm : float
        The small bound, of the whole gradient.
    n_steps : int
        Of a descent at a tenth of the rate from which it is not stable.
    """

    batch: tuple[Any, ...]
    clip_norm: float
    n_steps: int

    def styles(self, clipping: str = "abadi") -> dict[str, dict[str, Any]]:
        """Return the rows of Table 1; of a layerwise bound all layers get one part."""
        layers = self.batch[1]
        part = self.clip_norm / len(layers) ** 0.5
        flat, each = self.clip_norm, dict.fromkeys(layers, part)
        large = dict.fromkeys(layers, LARGE)
        return {
            "none": {"clip_norm": flat, "clipping": "none"},
            "batch, flat": {"clip_norm": flat, "clipping": "batch"},
            "batch, layerwise": {"clip_norm": each, "clipping": "batch"},
            "large R, flat": {"clip_norm": LARGE, "clipping": "abadi"},
            "large R, layerwise": {"clip_norm": large, "clipping": "abadi"},
            "small R, flat": {"clip_norm": flat, "clipping": clipping},
            "small R, layerwise": {"clip_norm": each, "clipping": clipping},
        }

    def follow(self, clipping: Mapping[str, Any]) -> LossDecay:
        """Return the descent without noise under one kind of clipping."""
        kernel = clipped_kernel(*self.batch, clip_norm=LARGE).kernel
        n_records = len(self.batch[2])
        # of a squared error: twice the kernel is its curvature in the outputs
        rate = 0.1 * n_records / float(np.linalg.eigvalsh(kernel).max())
        return measure_decay(
            *self.batch, **clipping, learning_rate=rate, n_steps=self.n_steps
        )


@dataclass(frozen=True)
class FlowProperties:
    """The columns of convergence, for one descent."""

    converges: bool
    monotone: bool
    to_zero: bool


def flow_properties(losses: Any) -> FlowProperties:
    """Return what the losses of one descent show: see the constants of this module."""
    found = np.asarray(losses, np.float64)
    first, last = found[0], found[-len(found) // 10 :]
    return FlowProperties(
        converges=bool(np.ptp(last) <= _STILL * first),
        monotone=bool(np.all(np.diff(found) <= 1e-12 * first)),
        to_zero=bool(last[-1] <= _DECAYED * first),
    )


def table_1(clipping: str = "abadi") -> dict[str, tuple[bool, ...]]:
    """Return, for each row of Table 1, which columns hold on all problems and steps."""
    problems = (outlier(), opposed(), runaway())
    found = {}
    for style in TABLE_1:
        decays = [each.follow(each.styles(clipping)[style]) for each in problems]
        kernels = [kernel.properties for d in decays for kernel in d.kernels]
        flows = [astuple(flow_properties(d.losses)) for d in decays]
        columns = [*zip(*map(of_kernel, kernels), strict=True)]
        columns += zip(*flows, strict=True)
        found[style] = tuple(map(all, columns))
    return found


def of_kernel(found: MatrixProperties) -> tuple[bool, bool, bool]:
    """Return the columns of the kernel."""
    return found.symmetric, found.positive_quadratic_form, found.positive_eigenvalues


def outlier() -> Problem:
    """Return three records of which one pulls against the others.

    Its gradient is seven times as long as theirs together. Clipped, they outvote it,
    and the loss rises.
    """
    x = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    y = np.array([-10.0, 1.0, 1.0])
    return Problem((_linear, _layers(1, 2), x, y, squared_error), 2.0, 1200)


def opposed() -> Problem:
    """Return two records whose clipped gradients cancel in each of two layers.

    Record (1, 2) has residual 2, record (2, 1) -2: their gradients are (2, -4) in one
    layer and (4, -2) in the other. Cut to one length they sum to zero, and the loss
    stays where it is, though the unclipped one falls to zero.
    """
    x, y = np.array([[1.0, 2.0], [2.0, 1.0]]), np.array([-1.0, 1.0])
    return Problem((_linear, _layers(1, 1), x, y, squared_error), 1.0, 300)


def runaway() -> Problem:
    """Return three records whose loss grows for ever, clipped in each of two layers.

    In the end the last record alone is clipped, by another factor in each layer. The
    parameters move at a constant speed, and its output moves away from its target.
    """
    x = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 2.0]])
    y = np.array([0.0, -1.0, 0.0])
    return Problem((_linear, _layers(1, 2), x, y, squared_error), 2**0.5, 1200)


def squared_error(output: Any, target: Any) -> Any:
    """Return the squared distance of the outputs of one record to its targets."""
    return jnp.sum((output - target) ** 2)


def _layers(first: int, second: int) -> dict[str, Any]:
    return {"first": np.zeros(first), "second": np.zeros(second)}


def _linear(params: Any, x: Any) -> Any:
    return x @ jnp.concatenate([params["first"], params["second"]])
