"""Predicted against measured decay of the loss of a small noisy gradient descent."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import jax
import numpy as np
from jax.flatten_util import ravel_pytree
from numpy.typing import ArrayLike, NDArray

from privfeat._checks import check_int, check_positive, check_real
from privfeat.analysis._axes import axes_or_new
from privfeat.analysis.ntk import Apply, ClippedKernel, Loss, clipped_kernel
from privfeat.core.noise.draws import gaussian
from privfeat.core.noise.keys import KeyStream


@dataclass(frozen=True)
class LossDecay:
    """What `measure_decay` found.

    Attributes
    ----------
    losses : array of shape (n_steps + 1,)
        Mean loss before each step, and at the end.
    predicted : array of shape (n_steps,)
        Change of the loss that the kernel foretells for each step.
    kernels : tuple of ClippedKernel
        Before each step.
    """

    losses: NDArray[np.float64]
    predicted: NDArray[np.float64]
    kernels: tuple[ClippedKernel, ...]

    @property
    def measured(self) -> NDArray[np.float64]:
        """Change of the loss in each step, (n_steps,)."""
        return np.diff(self.losses)


def measure_decay(
    apply: Apply,
    params: Mapping[str, Any],
    x: ArrayLike,
    y: ArrayLike,
    loss: Loss,
    *,
    clip_norm: float | Mapping[str, float],
    clipping: str = "abadi",
    learning_rate: float,
    noise_multiplier: float = 0.0,
    n_steps: int = 20,
    seed: int = 0,
) -> LossDecay:
    """Run full-batch DP gradient descent and compare its loss with the kernel's.

    Parameters
    ----------
    apply, params, x, y, loss, clip_norm, clipping
        See `clipped_kernel`. Records are public: all losses are exact.
    learning_rate : float
        ``eta`` of ``w -= eta / n (sum_i C_i grad_i + noise)``; > 0. The smaller, the
        closer to the gradient flow.
    noise_multiplier : float
        Stddev of the noise over ``clip_norm``, >= 0; per layer where it is layerwise.
    n_steps : int
    seed : int
        Of the noise, the same at every call: this measures, it protects nothing.

    Notes
    -----
    A step changes the loss by ``eta`` times `ClippedKernel.decay`, plus terms of order
    ``eta**2`` and noise of mean zero: Fact 4.1 of Bu, Wang & Long 2023.
    """
    rate = check_positive("learning_rate", learning_rate)
    noise = check_real("noise_multiplier", noise_multiplier, low=0.0, high=1e6)
    check_int("n_steps", n_steps, low=1)
    keys = KeyStream(seed)
    with jax.enable_x64(True):
        state = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), dict(params))
        records, targets = np.asarray(x, np.float64), np.asarray(y)

        def record_loss(tree: Any, record: Any, target: Any) -> jax.Array:
            return loss(apply(tree, record[None])[0], target)

        gradients = jax.jit(jax.vmap(jax.grad(record_loss), (None, 0, 0)))
        values = jax.jit(jax.vmap(record_loss, (None, 0, 0)))
        losses = [float(np.mean(values(state, records, targets)))]
        kernels = []
        layerwise = isinstance(clip_norm, Mapping)
        for _ in range(n_steps):
            kernel = clipped_kernel(
                apply,
                state,
                records,
                targets,
                loss,
                clip_norm=clip_norm,
                clipping=clipping,
            )
            kernels.append(kernel)
            rows = gradients(state, records, targets)
            state = {
                name: _step(
                    state[name],
                    rows[name],
                    kernel.factors[name if layerwise else "all"],
                    stddev=noise * _bound(clip_norm, name),
                    rate=rate / len(records),
                    keys=keys,
                )
                for name in state
            }
            losses.append(float(np.mean(values(state, records, targets))))
    predicted = rate * np.array([kernel.decay for kernel in kernels])
    return LossDecay(np.array(losses), predicted, tuple(kernels))


def _bound(clip_norm: float | Mapping[str, float], layer: str) -> float:
    return clip_norm[layer] if isinstance(clip_norm, Mapping) else clip_norm


def _step(
    layer: Any,
    gradients: Any,
    factors: NDArray[np.float64],
    *,
    stddev: float,
    rate: float,
    keys: KeyStream,
) -> Any:
    """Return the parameters of a layer after one noisy step on clipped gradients."""
    clipped = jax.tree.map(lambda leaf: np.tensordot(factors, leaf, 1), gradients)
    flat, unravel = ravel_pytree(clipped)
    noisy = unravel(flat + gaussian(keys.draw_noise_key(), flat.shape, stddev))
    return jax.tree.map(lambda w, g: np.asarray(w - rate * g), layer, noisy)


class LossDecayDisplay:
    """Loss of the noisy descent, and the loss that the kernel foretells.

    Parameters
    ----------
    decay : LossDecay

    Attributes
    ----------
    ax_, figure_ : matplotlib artists
        After `plot`.
    """

    def __init__(self, decay: LossDecay) -> None:
        self.decay = decay

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax``, or on new axes."""
        self.ax_, self.figure_ = axes_or_new(ax)
        losses = self.decay.losses
        foretold = losses[0] + np.append(0.0, np.cumsum(self.decay.predicted))
        self.ax_.plot(losses, label="measured")
        self.ax_.plot(foretold, "--", label="predicted")
        self.ax_.set_xlabel("step")
        self.ax_.set_ylabel("loss")
        self.ax_.legend()
        return self
