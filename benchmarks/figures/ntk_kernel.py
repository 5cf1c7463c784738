"""The neural tangent kernel of DP gradient descent: what clipping does to it.

Notation of [1]_ (Section 4): ``J_r`` is the Jacobian of all outputs in the parameters
of layer ``r``, ``H_r = J_r J_r^T``, and ``C_r`` the diagonal of clipping factors. The
loss follows ``-(dL/df) M (dL/df)^T`` with ``M = sum_r H_r``, ``H C`` for flat clipping,
or ``sum_r H_r C_r`` for layerwise clipping. With ``k`` outputs a record, its factor
stands ``k`` times in ``C``.

For pure functions of a pytree of parameters, whose top-level entries are the layers; of
a flax module: ``lambda params, x: module.apply({"params": params}, x)``. Computed
exactly on the records given, so for public ones.

References
----------
.. [1] Bu, Wang & Long. On the Convergence and Calibration of Deep Learning with
   Differential Privacy. TMLR 2023.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike, NDArray

Apply = Callable[[Any, Any], jax.Array]
Loss = Callable[[jax.Array, Any], jax.Array]
CLIPPINGS = ("abadi", "automatic", "normalize", "global", "none", "batch")
# Rounding that an eigenvalue or an asymmetry may have, relative to the largest entry.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class ClippedKernel:
    """The kernel of one batch at one state of the parameters, with its clipping.

    Attributes
    ----------
    kernel : array of shape (n k, n k)
        ``H``, the sum over layers: records times outputs, records first.
    clipped : array of shape (n k, n k)
        ``H C`` or ``sum_r H_r C_r``.
    factors : dict of layer to array of shape (n,)
        Clipping factors; under flat clipping, of the one layer ``"all"``.
    loss_gradient : array of shape (n k,)
        ``dL/df`` of the mean loss ``L`` of the batch.
    """

    kernel: NDArray[np.float64]
    clipped: NDArray[np.float64]
    factors: dict[str, NDArray[np.float64]]
    loss_gradient: NDArray[np.float64]

    @property
    def decay(self) -> float:
        """Time derivative of the loss in the gradient flow, Equations 4.3 and 4.4."""
        return -float(self.loss_gradient @ self.clipped @ self.loss_gradient)

    @property
    def properties(self) -> "MatrixProperties":
        """Row of Table 1 that this kernel falls in."""
        return matrix_properties(self.clipped)


@dataclass(frozen=True)
class MatrixProperties:
    """Columns of Table 1, for one matrix, up to rounding.

    Attributes
    ----------
    symmetric : bool
    positive_quadratic_form : bool
        ``x^T A x >= 0`` for all ``x``.
    positive_eigenvalues : bool
        All eigenvalues are real and ``>= 0``: Definition 4.2.
    smallest_quadratic_form : float
        Smallest ``x^T A x`` of a unit vector.
    smallest_eigenvalue : float
        Smallest real part.
    """

    symmetric: bool
    positive_quadratic_form: bool
    positive_eigenvalues: bool
    smallest_quadratic_form: float
    smallest_eigenvalue: float


def matrix_properties(matrix: ArrayLike) -> MatrixProperties:
    """Return symmetry and both kinds of positivity of a square matrix."""
    a = np.asarray(matrix, np.float64)
    if a.ndim != 2 or a.shape[0] != a.shape[1] or not np.all(np.isfinite(a)):
        raise ValueError(f"matrix must be square and finite, got shape {a.shape}.")
    slack = _ROUNDING * float(np.abs(a).max(initial=0.0)) * len(a)
    form = float(np.linalg.eigvalsh(0.5 * (a + a.T)).min())
    eigenvalues = np.linalg.eigvals(a)
    # an eigenvalue of multiplicity two moves by the square root of a perturbation
    imaginary = max(slack, _ROUNDING**0.5 * float(np.abs(eigenvalues).max()))
    real = bool(np.all(np.abs(eigenvalues.imag) <= imaginary))
    smallest = float(eigenvalues.real.min())
    return MatrixProperties(
        symmetric=bool(np.all(np.abs(a - a.T) <= slack)),
        positive_quadratic_form=form >= -slack,
        positive_eigenvalues=real and smallest >= -slack,
        smallest_quadratic_form=form,
        smallest_eigenvalue=smallest,
    )


def clipped_kernel(
    apply: Apply,
    params: Mapping[str, Any],
    x: ArrayLike,
    y: ArrayLike,
    loss: Loss,
    *,
    clip_norm: float | Mapping[str, float],
    clipping: str = "abadi",
) -> ClippedKernel:
    """Return the kernel of a batch before and after clipping.

    Parameters
    ----------
    apply : callable
        ``apply(params, x)`` is the output for records ``x``, of shape (n,) or (n, k);
        pure, and the output of a record depends on that record alone.
    params : mapping of layer to pytree
        Its top-level entries are the layers.
    x : array-like of shape (n, ...)
    y : array-like of shape (n, ...)
    loss : callable
        ``loss(output, target)`` of one record, a scalar.
    clip_norm : float or mapping of layer to float
        One bound for the whole gradient (flat), or one for each layer (layerwise).
    clipping : {"abadi", "automatic", "normalize", "global", "none", "batch"}
        The factor of a gradient with norm ``g`` and bound ``R``: ``min(1, R / g)``,
        ``R / (g + 0.01)``, ``R / g``, 1 where ``g <= R`` and else 0, or 1. Of
        ``"batch"`` that of ``"abadi"`` for the mean gradient, the same for all records.

    Raises
    ------
    ValueError
        If the layers of ``clip_norm`` are not those of ``params``.

    Notes
    -----
    Needs memory for the Jacobian, n k by the number of parameters. Of a flax network
    ``Network(module)`` of `privfeat.networks.engine.network` is an ``apply``, and its
    ``initial`` are the ``params``, each a layer.
    """
    with jax.enable_x64(True):
        params = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), dict(params))
        jacobians = _jacobians(apply, params, x)
        slopes = _loss_slopes(apply, params, x, y, loss)
    n = len(slopes)
    if isinstance(clip_norm, Mapping):
        bounds, groups = dict(clip_norm), jacobians
        if set(bounds) != set(params):
            raise ValueError(
                f"clip_norm must have the layers {sorted(params)}, got "
                f"{sorted(bounds)}."
            )
    else:
        bounds = {"all": clip_norm}
        groups = {"all": np.concatenate(list(jacobians.values()), axis=2)}
    size = slopes.size
    kernel, clipped = np.zeros((size, size)), np.zeros((size, size))
    factors = {}
    for name, jacobian in groups.items():
        gradients = np.einsum("nk,nkp->np", slopes, jacobian)
        if clipping == "batch":
            gradients = np.broadcast_to(gradients.mean(axis=0), gradients.shape)
        norms = np.linalg.norm(gradients, axis=1)
        factors[name] = clipping_factors(norms, bounds[name], clipping)
        rows = jacobian.reshape(size, -1)
        part = rows @ rows.T
        kernel += part
        clipped += part * np.repeat(factors[name], size // n)
    return ClippedKernel(kernel, clipped, factors, slopes.ravel() / n)


def clipping_factors(
    norms: ArrayLike, clip_norm: float, clipping: str = "abadi"
) -> NDArray[np.float64]:
    """Return the factor of each gradient, from its norm; see `clipped_kernel`."""
    if clipping not in CLIPPINGS:
        raise ValueError(f"clipping must be one of {CLIPPINGS}, got {clipping!r}.")
    if not 0.0 < clip_norm < math.inf:
        raise ValueError(f"clip_norm must be finite and > 0, got {clip_norm}.")
    g = np.asarray(norms, np.float64)
    if clipping == "none":
        return np.ones_like(g)
    if clipping == "global":
        return (g <= clip_norm).astype(np.float64)
    if clipping == "automatic":
        return clip_norm / (g + 0.01)
    if clipping == "normalize":
        # a gradient of zero stays zero, whatever its factor
        return clip_norm / np.maximum(g, np.finfo(float).tiny)
    return clip_norm / np.maximum(g, clip_norm)


def _jacobians(
    apply: Apply, params: Mapping[str, Any], x: ArrayLike
) -> dict[str, NDArray[np.float64]]:
    """Return the Jacobian in each layer, (n, k, parameters of the layer)."""
    per_record = _per_record(apply, params, np.asarray(x, np.float64))
    return {
        name: np.concatenate(
            [
                np.asarray(leaf).reshape(*leaf.shape[:2], -1)
                for leaf in jax.tree.leaves(per_record[name])
            ],
            axis=2,
        )
        for name in params
    }


@partial(jax.jit, static_argnums=0)
def _per_record(apply: Apply, params: Mapping[str, Any], records: Any) -> Any:
    def output(tree: dict[str, Any], record: Any) -> jax.Array:
        return apply(tree, record[None])[0].reshape(-1)

    return jax.vmap(jax.jacrev(output), in_axes=(None, 0))(params, records)


def _loss_slopes(
    apply: Apply, params: Mapping[str, Any], x: ArrayLike, y: ArrayLike, loss: Loss
) -> NDArray[np.float64]:
    """Return the derivative of each record's loss in its outputs, (n, k)."""
    records, targets = np.asarray(x, np.float64), np.asarray(y)
    return np.asarray(_slopes(apply, loss, params, records, targets))


@partial(jax.jit, static_argnums=(0, 1))
def _slopes(
    apply: Apply, loss: Loss, params: Mapping[str, Any], records: Any, targets: Any
) -> jax.Array:
    outputs = apply(params, records)
    return jax.vmap(jax.grad(loss))(outputs, targets).reshape(len(outputs), -1)
