"""Table 1 of Bu et al. 2023 for a network by name: its kernel, by style of clipping."""

from typing import Any

import jax
import jax.numpy as jnp

from privfeat._checks import check_int, check_positive
from privfeat._extras import require
from privfeat._random import make_rng
from privfeat.analysis.ntk import ClippedKernel, clipped_kernel


def kernels_by_style(
    model: str,
    shape: tuple[int, ...],
    *,
    n_records: int = 8,
    n_classes: int = 3,
    clip_norm: float = 0.1,
    clipping: str = "abadi",
    seed: int | None = None,
) -> dict[str, ClippedKernel]:
    """Return the kernels of a fresh network on random records and labels.

    Parameters
    ----------
    model : str
        A name of `privfeat.networks.NETWORKS`, or a ``simpleVGG-...``.
    shape : tuple of int
        Of a record.
    n_records, n_classes : int
    clip_norm : float
        Of the whole gradient; layerwise, every parameter has an equal part of it.
    clipping : str
        See `privfeat.analysis.ntk.clipped_kernel`.
    seed : int, optional
        Of the weights and records.

    Returns
    -------
    kernels : dict
        Of ``"none"``, ``"flat"`` and ``"layerwise"``.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range.

    Examples
    --------
    >>> kernels = kernels_by_style("mlp", (4,), n_records=2, seed=0)
    >>> kernels["none"].properties.symmetric
    True
    """
    require("a network", "flax", extra="train")
    from flax import nnx

    from privfeat.networks.model import Network
    from privfeat.networks.models import build

    check_int("n_records", n_records, low=1)
    check_int("n_classes", n_classes, low=2)
    check_positive("clip_norm", clip_norm)
    rng = make_rng(seed)
    rngs = nnx.Rngs(params=jax.random.key(int(rng.integers(2**31))))
    network = Network(build(model, shape, n_classes, rngs=rngs))
    x = rng.normal(size=(n_records, *shape))
    y = jnp.arange(n_records) % n_classes
    part = clip_norm / len(network.initial) ** 0.5
    styles: dict[str, tuple[Any, str]] = {
        "none": (clip_norm, "none"),
        "flat": (clip_norm, clipping),
        "layerwise": (dict.fromkeys(network.initial, part), clipping),
    }
    return {
        style: clipped_kernel(
            network, network.initial, x, y, _loss, clip_norm=bound, clipping=factor
        )
        for style, (bound, factor) in styles.items()
    }


def _loss(scores: Any, label: Any) -> Any:
    return -jax.nn.log_softmax(scores)[label]
