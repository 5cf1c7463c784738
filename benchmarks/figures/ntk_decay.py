"""Predicted against measured decay of the loss of a small noisy gradient descent."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np
from figures.ntk_kernel import Apply, ClippedKernel, Loss, clipped_kernel
from jax.flatten_util import ravel_pytree
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class LossDecay:
    """What `measure_decay` found.

    Attributes
    ----------
    losses : array of shape (n_steps + 1,)
        Mean loss before each step, and at the end.
    predicted : array of shape (n_steps,)
        Change of the loss that the kernel predicts for each step.
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
    rng = np.random.default_rng(seed)
    with jax.enable_x64(True):
        state = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), dict(params))
        records, targets = np.asarray(x, np.float64), np.asarray(y)
        value, rows = _losses_and_gradients(apply, loss, state, records, targets)
        losses, kernels = [float(np.mean(value))], []
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
            state = {
                name: _step(
                    state[name],
                    rows[name],
                    kernel.factors[name if layerwise else "all"],
                    stddev=noise_multiplier * _bound(clip_norm, name),
                    rate=learning_rate / len(records),
                    rng=rng,
                )
                for name in state
            }
            value, rows = _losses_and_gradients(apply, loss, state, records, targets)
            losses.append(float(np.mean(value)))
    predicted = learning_rate * np.array([kernel.decay for kernel in kernels])
    return LossDecay(np.array(losses), predicted, tuple(kernels))


@partial(jax.jit, static_argnums=(0, 1))
def _losses_and_gradients(
    apply: Apply, loss: Loss, params: Any, records: Any, targets: Any
) -> Any:
    """Return the loss of each record, and its gradient in the parameters."""

    def record_loss(tree: Any, record: Any, target: Any) -> jax.Array:
        return loss(apply(tree, record[None])[0], target)

    per_record = jax.vmap(jax.value_and_grad(record_loss), (None, 0, 0))
    return per_record(params, records, targets)


def _bound(clip_norm: float | Mapping[str, float], layer: str) -> float:
    return clip_norm[layer] if isinstance(clip_norm, Mapping) else clip_norm


def _step(
    layer: Any,
    gradients: Any,
    factors: NDArray[np.float64],
    *,
    stddev: float,
    rate: float,
    rng: np.random.Generator,
) -> Any:
    """Return the parameters of a layer after one noisy step on clipped gradients."""
    clipped = jax.tree.map(lambda leaf: np.tensordot(factors, leaf, 1), gradients)
    flat, unravel = ravel_pytree(clipped)
    noisy = unravel(flat + stddev * rng.normal(size=flat.shape))
    return jax.tree.map(lambda w, g: np.asarray(w - rate * g), layer, noisy)


def draw_decay(decay: LossDecay, ax: Any) -> None:
    """Draw the loss of the noisy descent, and the loss that the kernel predicts."""
    predicted = decay.losses[0] + np.append(0.0, np.cumsum(decay.predicted))
    ax.plot(decay.losses, label="measured")
    ax.plot(predicted, "--", label="predicted")
    ax.set_xlabel("step")
    ax.set_ylabel("loss")
    ax.legend()
