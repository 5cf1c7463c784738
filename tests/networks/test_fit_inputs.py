"""Networks, parameters and records that a fit takes or refuses."""

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from flax import nnx

from privfeat import DPSGDClassifier, load, save
from privfeat.exceptions import PrivacyWarning
from privfeat.networks.layers import Dense
from tests.combinations import few
from tests.networks.tiny import TINY

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_a_table_keeps_the_names_of_its_columns(tmp_path):
    table = pd.DataFrame(
        np.random.default_rng(0).normal(size=(64, 3)), columns=[*"abc"]
    )
    labels = np.arange(64) % 2
    clf = DPSGDClassifier(**TINY | {"model": "mlp"}).fit(table, labels)
    assert "the names of the features" in clf.privacy_.public
    save(clf, tmp_path / "model")
    for model in (clf, load(tmp_path / "model")):
        assert model.feature_names_in_.tolist() == [*"abc"]
        assert np.array_equal(model.predict(table), clf.predict(table.to_numpy()))
        with pytest.raises(ValueError, match="same order"):
            model.predict(table[[*"bca"]])
    clf.fit(table.to_numpy(), labels)
    assert not hasattr(clf, "feature_names_in_")


def test_reading_classes_and_seeding_warn(records):
    with pytest.warns(PrivacyWarning) as caught:
        DPSGDClassifier(**TINY | {"classes": None}).fit(*records)
    text = " ".join(str(warning.message) for warning in caught)
    assert "classes=None" in text
    assert "random_state" in text


@pytest.mark.parametrize(
    "params",
    [
        {name: value}
        for name in (
            "n_iter", "epochs", "expected_batch_size", "microbatch_size", "clip_norm",
            "learning_rate", "ema_decay", "average_from", "momentum", "n_copies",
            "n_votes", "delta", "noise_multiplier",
        )
        for value in (np.nan, -1, True, "x")
    ]
    + [
        {"clip_factor": "no"}, {"clip_style": "no"}, {"engine": "no"},
        {"optimizer": "no"}, {"schedule": "no"}, {"model": "no"}, {"frozen": "layers"},
        {"on_step": "print"}, {"on_step": lambda step: None}, {"vote": "no"},
        {"ema_decay": 0.5, "average_from": 0.5},
        {"frozen": ("",)}, {"augmentation": "no"},
        {"augmentation": "crop_flip"}, {"expected_batch_size": 31},
        {"weight_decay": np.nan}, {"warmup_steps": 5}, {"model": "wrn_16_4"},
    ],
)  # fmt: skip
def test_bad_parameters_are_refused_before_anything_is_released(
    records, released, params
):
    with pytest.raises((TypeError, ValueError)):
        DPSGDClassifier(**TINY | params).fit(*records)
    assert not released


class Mixing(nnx.Module):
    """Layers of this library, with something computed over records between them."""

    def __init__(self, n_inputs, n_outputs, over_records, *, rngs):
        self.head = Dense(n_inputs, n_outputs, rngs=rngs)
        self.over_records = over_records

    def __call__(self, x):
        return self.head(x - self.over_records(x))


@pytest.mark.parametrize("engine", ["fast", "reference"])
@pytest.mark.parametrize(
    "over_records",
    [
        lambda x: x.mean(axis=0, keepdims=True),
        lambda x: x.max(axis=0, keepdims=True),
        lambda x: jnp.sort(x, axis=0),
        lambda x: x[::-1],
    ],
)
def test_networks_that_mix_records_are_refused(records, released, engine, over_records):
    def mixing(shape, n_outputs, *, rngs):
        return Mixing(shape[0], n_outputs, over_records, rngs=rngs)

    with pytest.raises(ValueError, match="every record by itself"):
        DPSGDClassifier(**TINY | {"model": mixing, "engine": engine}).fit(*records)
    assert not released


@pytest.mark.parametrize("engine", few(1, ["fast", "reference"]))
def test_networks_of_a_user_that_do_not_mix_are_trained(records, engine):
    def centred(shape, n_outputs, *, rngs):
        return Mixing(
            shape[0], n_outputs, lambda x: x.mean(axis=1, keepdims=True), rngs=rngs
        )

    params = {"model": centred, "engine": engine, "trust_model": True}
    clf = DPSGDClassifier(**TINY | params).fit(*records)
    assert clf.n_iter_ == 4
    vouched = "that the network treats every record by itself (trust_model=True)"
    assert (vouched in clf.privacy_.public) == (engine == "fast")


@pytest.mark.slow
def test_a_network_may_be_a_single_layer(records):
    def layer(shape, n_outputs, *, rngs):
        return Dense(shape[0], n_outputs, rngs=rngs)

    fits = [
        DPSGDClassifier(
            **TINY | {"model": layer, "engine": engine, "trust_model": True}
        ).fit(*records)
        for engine in ("fast", "reference")
    ]
    assert set(fits[0].parameters_) == {"bias", "kernel"}
    for name, leaf in fits[0].parameters_.items():
        np.testing.assert_allclose(fits[1].parameters_[name], leaf, atol=1e-5)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_records_that_are_not_finite_are_refused(records, value, released):
    X, y = records
    X = X.copy()
    X[4, 2] = value
    with pytest.raises(ValueError, match="finite") as caught:
        DPSGDClassifier(**TINY).fit(X, y)
    assert "4" not in str(caught.value)
    assert not released
