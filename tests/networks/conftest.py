"""Small networks and batches for all tests of networks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from privfeat.core.sums.batches import UNIT
from privfeat.estimation.fitting import kept_compiled_code
from privfeat.networks.engine.clipped_sums import clipped_sum, record_parts
from privfeat.networks.engine.losses import cross_entropy
from privfeat.networks.engine.network import Network
from privfeat.networks.models import MLP
from tests.networks.teams import Teams
from tests.networks.tiny import UNOPTIMIZED


@pytest.fixture(autouse=True, scope="session")
def compiled_code():
    """Compile once what several tests, or several runs of them, use."""
    with kept_compiled_code():
        yield


@pytest.fixture
def drawn(plant):
    """Collect the noise of all fits."""
    draws = []
    original = plant.genuine("Gaussian noise")

    def gaussian(key, shape, stddev):
        draws.append(original(key, shape, stddev))
        return draws[-1]

    plant("Gaussian noise", gaussian)
    return draws


@pytest.fixture
def rngs():
    return nnx.Rngs(params=jax.random.key(0))


@pytest.fixture
def small_mlp(rngs):
    """Return a network that is quick to compile, for records of shape (5,)."""
    return MLP((5,), 4, widths=(8,), rngs=rngs)


@pytest.fixture
def make_batch():
    """Return inputs of shape (n, copies, ...) and labels of four classes."""

    def make(shape, n=3, copies=1, scale=1.0):
        draw = np.random.default_rng(7)
        inputs = draw.normal(size=(n, copies, *shape), scale=scale)
        labels = draw.integers(0, 4, n)
        return jnp.asarray(inputs, jnp.float32), jnp.asarray(labels)

    return make


@pytest.fixture
def make_sum():
    """Return the clipped sum by one engine, compiled for batches of one shape.

    In units of the gradient: its whole numbers are of ``clip_norm * UNIT``.
    """

    def make(module, batch, engine, *, clip_norm=0.1, **options):
        frozen = options.pop("frozen", frozenset())
        compiler = None if options.pop("optimized", False) else UNOPTIMIZED
        network, style = Network(module), options.pop("style", "flat")
        names = tuple(name for name in network.initial if name not in frozen)
        parts = record_parts(network, cross_entropy, style, engine, names)
        function = clipped_sum(parts, **options)

        def arguments(batch, valid=None):
            inputs, labels = batch
            valid = np.ones(len(inputs), bool) if valid is None else valid
            valid, radius = jnp.asarray(valid), jnp.float32(clip_norm)
            return network.initial, inputs, labels, valid, radius

        lowered = function.lower(*arguments(batch))
        compiled = lowered.compile(compiler_options=compiler)
        unit = clip_norm * UNIT if options.get("exact", True) else 1.0

        def compute(*given):
            found = compiled(*arguments(*given))
            return {n: np.asarray(leaf, np.float64) * unit for n, leaf in found.items()}

        return compute

    return make


@pytest.fixture
def sum_of(make_sum):
    """Return the clipped sum of one batch by one engine."""

    def compute(module, batch, engine, *, valid=None, **options):
        return make_sum(module, batch, engine, **options)(batch, valid)

    return compute


@pytest.fixture
def norm_of():
    """Return the norm of a gradient in all its parameters together."""

    def compute(gradient):
        leaves = [np.asarray(leaf, np.float64).ravel() for leaf in gradient.values()]
        return float(np.linalg.norm(np.concatenate(leaves)))

    return compute


@pytest.fixture
def records():
    """Return thirty records of shape (5,), of three classes."""
    draw = np.random.default_rng(3)
    return draw.normal(size=(30, 5)), draw.integers(0, 3, 30)


@pytest.fixture
def released(plant):
    """Record the exact sums of a fit."""
    sums = []
    original = plant.genuine("release of a sum")

    def release(self, name, exact, **options):
        sums.append(exact.value.copy())
        return original(self, name, exact, **options)

    plant("release of a sum", release)
    return sums


@pytest.fixture
def together(plant):
    """Run a function in several threads, as if they were processes of one job."""
    return Teams(plant)
