"""Bounds that follow the norms: sensitivity, accounting, and what they converge to."""

import math

import jax.numpy as jnp
import numpy as np
import optax
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent

from privfeat import DPSGDClassifier, DPSGDRegressor
from privfeat.core.accounting.pld import pld_epsilon
from privfeat.core.sums.batches import UNIT
from privfeat.networks.engine.clipped_sums import record_parts
from privfeat.networks.engine.clipping import parts_of
from privfeat.networks.engine.losses import cross_entropy
from privfeat.networks.engine.network import Network
from privfeat.networks.training.adaptive import (
    BOUNDS,
    NormBounds,
    adaptive_optimizer,
    adaptive_sum,
)
from privfeat.networks.training.loop import flatten
from privfeat.networks.weights import build
from tests.networks.tiny import TINY, UNOPTIMIZED

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
ADAPTIVE = TINY | {"clipping": "adaptive", "clip_style": "layerwise"}
N_LAYERS = 4  # of the mlp
DEFAULT = NormBounds()


@pytest.fixture
def moves(rngs):
    """Return what single records of all sizes and labels add to a release."""

    def compute(style="layerwise", factor="abadi", how=DEFAULT):
        network = Network(build("mlp", (5,), 3, rngs=rngs))
        names = tuple(network.initial)
        parts = record_parts(network, cross_entropy, style, "fast", names)
        n_parts = len(parts_of(names, style))
        parameters = network.initial | {BOUNDS: jnp.linspace(0.05, 0.2, n_parts)}
        draw = np.random.default_rng(0).normal(size=(1, 1, 5))

        def arguments(size, label):
            inputs = jnp.asarray(draw * size, jnp.float32)
            valid = jnp.ones(1, bool)
            return parameters, inputs, jnp.array([label]), valid, jnp.float32(1.0)

        lowered = adaptive_sum(parts, factor, how).lower(*arguments(1.0, 0))
        compiled = lowered.compile(compiler_options=UNOPTIMIZED)
        return [
            flatten(compiled(*arguments(size, label)), (*names, BOUNDS)) * UNIT
            for size in (1e-3, 1.0, 1e3, -1e3)
            for label in range(3)
        ]

    return compute


@pytest.mark.parametrize("factor", ["abadi", "automatic", "normalize", "global"])
@pytest.mark.parametrize("style", ["flat", "layerwise"])
def test_one_record_adds_at_most_one_to_the_release(moves, factor, style):
    """Brute force: every record alone, hence all that it can change."""
    found = moves(style, factor)
    assert max(map(np.linalg.norm, found)) <= 1.0
    n_parts = N_LAYERS if style == "layerwise" else 1
    of_norms = np.stack(found)[:, -n_parts:]
    assert of_norms.min() >= 0.0
    assert of_norms.max() == pytest.approx(
        math.sqrt(NormBounds().norm_share / n_parts), rel=1e-5
    )
    if factor == "normalize":
        assert max(map(np.linalg.norm, found)) > 0.98  # the bound is reached
    gaps = [np.linalg.norm(one - other) for one in found for other in found]
    assert max(gaps) <= 2.0


@pytest.mark.parametrize("how", [NormBounds(1.0, 0.15), NormBounds(30.0, 1e-4)])
def test_no_norm_share_or_beta_lets_a_record_add_more(moves, how):
    found = moves("layerwise", "normalize", how)
    assert 0.98 < max(map(np.linalg.norm, found)) <= 1.0
    most = np.stack(found)[:, -N_LAYERS:].max()
    assert most == pytest.approx(how.shares(N_LAYERS)[1], rel=2e-2)


@pytest.mark.slow
def test_the_first_bounds_may_be_given(records, plant):
    """Without a step, and so without a release, they are what the fit starts from."""
    starts = []
    original = plant.genuine("release of a sum")

    def release(self, name, exact, **options):
        starts.append(np.linalg.norm(exact.value[:-1]))
        return original(self, name, exact, **options)

    plant("release of a sum", release)
    X, y = records
    params = TINY | {"n_iter": 1, "expected_batch_size": None, "clipping": "adaptive"}
    for initial in (1e-6, 1e6):
        DPSGDClassifier(**params | {"initial_clip_norm": initial}).fit(X, y)
    assert starts[0] > 1.0 > 1e-3 > starts[1] > 0.0


@pytest.mark.slow
def test_norms_that_are_not_limited_break_the_bound(moves, monkeypatch):
    """The test above notices a norm that counts in full."""
    monkeypatch.setattr(jnp, "minimum", lambda norm, _: norm)
    assert max(map(np.linalg.norm, moves(factor="global"))) > 1.1


@pytest.mark.slow
def test_gradients_that_are_not_clipped_break_the_bound(moves, plant):
    plant("factors of the clip", lambda norms, *_: jnp.ones_like(norms))
    assert max(map(np.linalg.norm, moves())) > 1.1


@pytest.mark.slow
def test_the_statement_holds_one_release_a_step(records, released):
    clf = DPSGDClassifier(**ADAPTIVE).fit(*records)
    fixed = DPSGDClassifier(**TINY).fit(*records)
    assert clf.privacy_.releases == fixed.privacy_.releases
    assert clf.privacy_.epsilon == fixed.privacy_.epsilon
    assert len(released) == 8
    assert len(released[0]) == len(released[4]) + N_LAYERS
    assert BOUNDS not in clf.parameters_


@pytest.mark.slow
def test_two_sampled_releases_of_one_sample_would_be_charged_too_little():
    """Why norms and gradients are one release: samples that are shared cost more."""
    sampled, n_iter = 0.05, 50

    def epsilon(multiplier, count):
        event = PoissonSampledDpEvent(sampled, GaussianDpEvent(multiplier))
        return pld_epsilon(SelfComposedDpEvent(event, count), 1e-5)

    as_one = epsilon(1.0 / math.sqrt(2.0), n_iter)
    assert epsilon(1.0, 2 * n_iter) < 0.9 * as_one


def test_bounds_become_the_multiple_of_the_mean_norm():
    """Without noise, and norms of 3 and 0.5 in two parts, from bounds far away."""
    norms = np.array([3.0, 0.5])
    optimizer = adaptive_optimizer(optax.sgd(0.0), {"a": 0, "b": 1}, 1.5, NormBounds())
    parameters = {"a": jnp.zeros(2), "b": jnp.zeros(1)}
    parameters[BOUNDS] = jnp.array([0.01, 40.0])
    state = optimizer.init(parameters)
    unit = math.sqrt(NormBounds().norm_share / 2)
    for _ in range(20):
        limits = 2.0 * np.asarray(parameters[BOUNDS])
        mean = {"a": jnp.ones(2), "b": jnp.ones(1)}
        mean[BOUNDS] = jnp.asarray(unit * np.minimum(norms, limits) / limits)
        updates, state = optimizer.update(mean, state, parameters)
        parameters = optax.apply_updates(parameters, updates)
    np.testing.assert_allclose(parameters[BOUNDS], 1.5 * norms, rtol=1e-5)


def test_gradients_come_back_in_their_own_units():
    optimizer = adaptive_optimizer(optax.sgd(1.0), {"a": 0, "b": 1}, 1.0, NormBounds())
    parameters = {"a": jnp.zeros(2), "b": jnp.zeros(1), BOUNDS: jnp.array([0.5, 8.0])}
    unit = math.sqrt((1.0 - NormBounds().norm_share) / 2)
    mean = {"a": jnp.full(2, unit / 0.5), "b": jnp.full(1, unit / 8.0)}
    mean[BOUNDS] = jnp.array([-1e9, 1e9])  # noise may be anything
    updates, _ = optimizer.update(mean, optimizer.init(parameters), parameters)
    np.testing.assert_allclose(updates["a"], -1.0, rtol=1e-6)
    np.testing.assert_allclose(updates["b"], -1.0, rtol=1e-6)
    # and bounds halve or double at most
    np.testing.assert_allclose(updates[BOUNDS], [-0.25, 8.0])


@pytest.mark.slow
def test_regressors_adapt_too(records):
    X, _ = records
    model = DPSGDRegressor(
        clipping="adaptive", noise_multiplier=1.0, n_iter=2, expected_batch_size=8,
        ema_decay=0.5, random_state=0,
    ).fit(X, X[:, :2])  # fmt: skip
    assert model.predict(X).shape == (30, 2)
    assert BOUNDS not in model.parameters_


@pytest.mark.parametrize(
    "params",
    [
        {"clipping": "no"},
        {"clip_norm": ((0.0, 0.1), (0.5, 1.0))},
        {"clip_norm": {"": 1.0}},
        {"clipping": "fixed", "norm_beta": 3.0},
        {"norm_beta": 0.5, "clipping": "adaptive"},
        {"norm_share": 0.2},
        {"initial_clip_norm": np.nan},
    ],
)
def test_bad_parameters_are_refused(records, released, params):
    with pytest.raises(ValueError, match=r"clip|norm"):
        DPSGDClassifier(**ADAPTIVE | params).fit(*records)
    assert not released
