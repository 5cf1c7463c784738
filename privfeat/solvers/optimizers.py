"""First-order optimizers (optax) on noisy gradients."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float

from privfeat._checks import check_choice, check_positive

Optimizer: TypeAlias = Any  # an optax.GradientTransformation: optax has no types

# Functions of optax, which takes long to import, and their options.
_FACTORIES: dict[str, tuple[str, dict[str, float]]] = {
    "adam": ("adam", {}),
    "rmsprop": ("rmsprop", {}),
    "sgd": ("sgd", {}),
    "momentum": ("sgd", {"momentum": 0.9}),
}


def takes_unit_steps(optimizer: Any) -> bool:
    """Return whether its steps have the size of the rate, whatever the gradient's."""
    return isinstance(optimizer, str) and optimizer in ("adam", "rmsprop")


def check_optimizer(optimizer: Any, learning_rate: Any) -> None:
    """Raise TypeError or ValueError unless the two parameters fit together."""
    if not isinstance(optimizer, str):
        import optax

        if isinstance(optimizer, optax.GradientTransformation):
            if learning_rate is not None:
                raise ValueError(
                    "learning_rate must be None for an optax optimizer, got "
                    f"{learning_rate!r}. The optimizer has its own."
                )
            return
    check_choice("optimizer", optimizer, _FACTORIES)
    if learning_rate is not None:
        check_positive("learning_rate", learning_rate)
    elif not takes_unit_steps(optimizer):
        raise ValueError(
            f"learning_rate must be a number for optimizer={optimizer!r}, got None."
        )


def start_optimizer(
    optimizer: str | Optimizer,
    learning_rate: float | None,
    coef: Float[np.ndarray, "m c"],
    n_steps: int,
) -> Callable[[Float[np.ndarray, "m c"], Float[np.ndarray, "m c"]], Any]:
    """Return ``update(noisy_gradient, coef) -> coef`` with fresh optimizer state."""
    import jax
    import jax.numpy as jnp
    import optax

    if isinstance(optimizer, str):
        name, options = _FACTORIES[optimizer]
        if name == "adam":
            # a memory of a sixth of the steps, the usual one from 60 steps on
            options = {"b1": min(0.9, max(0.5, 1.0 - 6.0 / n_steps))}
        optimizer = getattr(optax, name)(float(learning_rate or 0.0), **options)
    with jax.enable_x64(True):
        state = optimizer.init(jnp.asarray(coef, jnp.float64))

    def update(
        noisy_gradient: Float[np.ndarray, "m c"], coef: Float[np.ndarray, "m c"]
    ) -> Float[np.ndarray, "m c"]:
        nonlocal state
        # optax mixes integer counts with floats, and float32 with float64
        with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
            current = jnp.asarray(coef)
            updates, state = optimizer.update(
                jnp.asarray(noisy_gradient), state, current
            )
            return np.asarray(optax.apply_updates(current, updates))

    return update


def rehearse(optimizer: str | Optimizer, shape: tuple[int, int]) -> None:
    """Raise TypeError unless an optimizer takes a step from a gradient alone.

    Before the fit is charged: a line search, say, asks for the loss as well.
    """
    if isinstance(optimizer, str):
        return
    nothing = np.zeros(shape)
    try:
        start_optimizer(optimizer, None, nothing, 1)(nothing, nothing)
    except Exception as error:
        raise TypeError(
            "optimizer must take a step from a gradient and coefficients alone, but "
            f"one of zeros raised: {error}. Pass another optax optimizer."
        ) from error
