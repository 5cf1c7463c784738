"""Fits of equal networks share the compiled sum of a batch, and nothing else."""

import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from privfeat import DPSGDClassifier
from privfeat.networks.engine import choice
from privfeat.networks.engine.choice import BatchSum, sum_of_batch
from privfeat.networks.engine.losses import cross_entropy
from privfeat.networks.engine.network import Network
from privfeat.networks.weights import build


def network(seed=0, n_outputs=2, recipe=("mlp", 3, 2)):
    module = build("mlp", (3,), n_outputs, rngs=nnx.Rngs(seed))
    return Network(module, recipe)


def made(of, style="flat", engine="fast", factor="abadi", exact=True, shares=None):
    names = tuple(of.initial)
    what = BatchSum(cross_entropy, style, engine, names, factor, exact, shares)
    return sum_of_batch(of, what)


def test_equal_networks_have_one_sum():
    assert made(network(0)) is made(network(1))


@pytest.mark.parametrize(
    "options",
    [
        {"style": "layerwise"},
        {"engine": "reference"},
        {"factor": "automatic"},
        {"exact": False},
        {"shares": (("", 0.5),)},
    ],
)
def test_other_sums_are_made_anew(options):
    assert made(network(), **options) is not made(network())


def test_another_network_has_another_sum():
    assert made(network(n_outputs=3, recipe=("mlp", 3, 3))) is not made(network())


@pytest.mark.slow
def test_a_network_of_the_user_is_not_kept():
    of = network(recipe=None)
    assert made(of) is not made(of)
    gone = weakref.ref(of)
    del of
    gc.collect()
    assert gone() is None


def test_what_is_kept_holds_no_parameters():
    outline = network().outline()
    kinds = {type(leaf) for leaf in outline.initial.values()}
    kinds |= {type(variable.get_raw_value()) for _, variable in outline._leaves}
    assert kinds == {jax.ShapeDtypeStruct}


def test_a_shared_sum_is_that_of_its_own_parameters():
    """Of the parameters, records and clip norm that it is given, not of the first."""
    rng = np.random.default_rng(0)
    for seed in (0, 1):
        of = network(seed)
        given = (
            jnp.asarray(rng.normal(size=(4, 1, 3)), jnp.float32),
            jnp.asarray(rng.integers(0, 2, 4)),
            jnp.ones(4, bool),
            jnp.float32(0.5 + seed),
        )
        found = made(of)(of.initial, *given)
        names = tuple(of.initial)
        what = BatchSum(cross_entropy, "flat", "fast", names, "abadi", True)
        alone = choice._made(of, what)(of.initial, *given)
        for name, leaf in alone.items():
            np.testing.assert_array_equal(found[name], leaf, err_msg=name)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
def test_a_second_fit_of_the_same_network_compiles_no_sum_again():
    X, y = np.random.default_rng(0).normal(size=(8, 3)), np.arange(8) % 2
    params = {"noise_multiplier": 1.0, "classes": [0, 1], "expected_batch_size": 4}
    choice._shared.cache_clear()
    for seed in (0, 1):
        DPSGDClassifier(model="mlp", random_state=seed, n_iter=1, **params).fit(X, y)
    assert choice._shared.cache_info()[:2] == (1, 1)  # hits, misses
