"""Networks of unknown make: what they do to a batch cannot move a sum or a score."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax.experimental import pallas

from privfeat import DPSGDClassifier, DPSGDRegressor
from privfeat.audit import replay
from privfeat.networks import NETWORKS, layers
from privfeat.networks.engine import losses
from privfeat.networks.layers.basic import FastEngineError
from tests.networks.tiny import TINY

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


class Routed(nnx.Module):
    """Sends the four records of a batch with the largest gates to an expert."""

    def __init__(self, shape, n_outputs, *, rngs):
        self.expert = layers.Dense(shape[0], shape[0], rngs=rngs)
        self.head = layers.Dense(shape[0], n_outputs, rngs=rngs)

    def __call__(self, x):
        gate = x[:, 0]
        least = jax.lax.top_k(gate, min(4, len(x)))[0][-1]
        more = jnp.where((gate >= least)[:, None], 3 * jnp.tanh(self.expert(x)), 0.0)
        return self.head(x + more)


class RoutedNamed(layers.Dense):
    """A layer of ours, changed: it is no longer ours."""

    def __init__(self, shape, n_outputs, *, rngs):
        super().__init__(shape[0], n_outputs, rngs=rngs)

    def __call__(self, x):
        gate = x[:, 0]
        least = jax.lax.top_k(gate, min(4, len(x)))[0][-1]
        return super().__call__(jnp.where((gate >= least)[:, None], 3.0 * x, x))


@pytest.fixture
def gated():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(32, 8)).astype(np.float32)
    X[:8, 0] = np.linspace(5, 5.1, 8)
    return X, draw.integers(0, 3, 32)


@pytest.mark.slow
@pytest.mark.parametrize("made", [False, True])
@pytest.mark.parametrize("network", [Routed, RoutedNamed])
def test_routing_over_a_batch_moves_no_sum_by_more_than_declared(gated, network, made):
    """With the fast engine, 1.59 times as far for `Routed`."""
    model = network((8,), 3, rngs=nnx.Rngs(0)) if made else network
    clf = DPSGDClassifier(
        model=model,
        classes=range(3),
        noise_multiplier=1.0,
        n_iter=1,
        expected_batch_size=None,
        clip_norm=0.1,
    )
    for record in (4, 5, 7):
        assert replay(clf, *gated, record=record).ok


@pytest.mark.slow
def test_a_score_depends_on_its_record_alone(gated):
    X, y = gated
    clf = DPSGDClassifier(**TINY | {"model": Routed}).fit(X, y)
    scores = clf.decision_function(X)
    for i in (0, 3, 7):
        assert np.array_equal(clf.decision_function(X[i : i + 1])[0], scores[i])
        assert np.array_equal(clf.decision_function(X[::-1])[31 - i], scores[i])


@pytest.mark.parametrize("params", [{}, {"trust_model": False}])
def test_the_fast_engine_needs_someone_who_vouches(gated, params):
    clf = DPSGDClassifier(**TINY | {"model": Routed, "engine": "fast"} | params)
    with pytest.raises(FastEngineError, match="trust_model must be True"):
        clf.fit(*gated)
    clf.set_params(trust_model=1)
    with pytest.raises(TypeError, match="trust_model must be True or False"):
        clf.fit(*gated)


class Shaped(nnx.Module):
    """A layer whose outputs come in another shape."""

    def __init__(self, n_inputs, n_outputs, change, *, rngs):
        self.head = layers.Dense(n_inputs, n_outputs, rngs=rngs)
        self.change = change

    def __call__(self, x):
        return self.change(self.head(x))


SHAPES = {
    "vector": lambda scores: scores[:, 0],
    "row": lambda scores: scores.T,
    "axis": lambda scores: scores[:, None],
    "outputs": lambda scores: jnp.concatenate([scores, scores], axis=1),
    "pair": lambda scores: (scores, scores),
}


@pytest.mark.parametrize("change", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_scores_of_another_shape_are_refused_before_a_draw(gated, change, engine):
    """A vector of scores met the targets of all: 11 times as far as declared."""

    def model(shape, n_outputs, *, rngs):
        return Shaped(shape[0], n_outputs, change, rngs=rngs)

    common = {"model": model, "engine": engine, "trust_model": True, "n_iter": 1}
    for estimator in (
        DPSGDRegressor(**common, noise_multiplier=1.0, expected_batch_size=8),
        DPSGDClassifier(**TINY | common | {"classes": range(2)}),
    ):
        with pytest.raises(ValueError, match="scores of shape"):
            estimator.fit(gated[0], gated[1] % 2)
        assert not hasattr(estimator, "privacy_")


@pytest.mark.parametrize("shape", [(4,), (1, 4), (4, 1, 1), (1, 1)])
def test_losses_refuse_scores_that_are_no_row_for_each_record(shape):
    for loss, targets in (
        (losses.half_squared_error, jnp.zeros((4, 1))),
        (losses.cross_entropy, jnp.zeros(4, int)),
    ):
        with pytest.raises(ValueError, match="one row for each record"):
            loss(jnp.zeros(shape), targets)


class Complex(nnx.Module):
    """Its gradient is ``g (1 +- i)``, whose squares sum to zero."""

    def __init__(self, shape, n_outputs, *, rngs):
        self.kernel = nnx.Param(jnp.zeros((shape[0], n_outputs), jnp.complex64))

    def __call__(self, x):
        signs = jnp.where(jnp.arange(x.shape[1]) % 2 == 0, 1.0, -1.0)
        kernel = self.kernel[...]
        return x @ jnp.real(kernel) + (signs * x) @ jnp.imag(kernel)


@pytest.mark.parametrize("dtype", ["complex64", "int32", "float8_e4m3fn"])
def test_parameters_whose_gradients_have_no_norm_are_refused(gated, dtype):
    """Of complex ones a record moved the sum by 40 clip norms."""
    model = Complex((8,), 3, rngs=nnx.Rngs(0))
    model.kernel = nnx.Param(jnp.zeros((8, 3), dtype))
    for engine in ("auto", "reference"):
        clf = DPSGDClassifier(**TINY | {"model": model, "engine": engine})
        with pytest.raises(TypeError, match=f"got 'kernel' of {dtype}"):
            clf.fit(*gated)
        assert not hasattr(clf, "privacy_")


def test_named_networks_cannot_be_exchanged():
    with pytest.raises(TypeError):
        NETWORKS["mlp"] = Routed


@jax.custom_batching.custom_vmap
def batch_centred(x):
    return x


@batch_centred.def_vmap
def _(axis_size, in_batched, x):
    return x - x.mean(axis=0, keepdims=True), True


def called_back(x):
    like = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return jax.pure_callback(
        lambda x: x - x.mean(axis=0, keepdims=True),
        like,
        jax.lax.stop_gradient(x),
        vmap_method="expand_dims",
    )


def shown(x):
    jax.debug.print("{}", x)
    return x


@jax.custom_vjp
def back(x):
    return x


back.defvjp(lambda x: (x, None), lambda kept, g: (batch_centred(g),))


def by_hand(x):
    def kernel(read, write):
        write[...] = read[...]

    call = pallas.pallas_call(kernel, jax.typeof(x), interpret=True)
    return x + call(jax.lax.stop_gradient(x))


@pytest.mark.parametrize("step", [batch_centred, called_back, shown, back, by_hand])
@pytest.mark.parametrize("inside", [lambda f: f, jax.jit, jax.checkpoint])
def test_operations_that_see_a_batch_under_vmap_are_refused(gated, step, inside):
    class Escaping(nnx.Module):
        def __init__(self, shape, n_outputs, *, rngs):
            self.first = nnx.Linear(shape[0], shape[0], rngs=rngs)
            self.head = nnx.Linear(shape[0], n_outputs, rngs=rngs)

        def __call__(self, x):
            return self.head(inside(step)(self.first(x)))

    with pytest.raises(ValueError, match="one that may see a whole batch"):
        DPSGDClassifier(**TINY | {"model": Escaping}).fit(*gated)
