"""Fits of whole networks that are charged to a ledger."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from sklearn.base import clone

from privfeat import (
    BudgetExceededError,
    DPSGDClassifier,
    DPSGDRegressor,
    LedgerError,
    PrivacyError,
    PrivacyLedger,
    load,
    save,
)


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "x.ledger", dataset="x", epsilon=20.0, delta=1e-5)


@pytest.fixture
def make(ledger):
    def make(cls=DPSGDClassifier, **params):
        params = {"noise_multiplier": 2.0} | params
        params = {"expected_batch_size": None, "n_iter": 3} | params
        if cls is DPSGDClassifier:
            params |= {"model": "mlp", "classes": range(3)}
        return cls(ledger=ledger, microbatch_size=4, **params)

    return make


@pytest.fixture
def draws(plant):
    """Count the draws of noise and of batches."""
    made = []
    seams = {"gaussian": "Gaussian noise", "bernoulli": "Poisson sample"}
    for name, seam in seams.items():
        original = plant.genuine(seam)

        def draw(*args, original=original, name=name):
            made.append(name)
            return original(*args)

        plant(seam, draw)
    return made


@pytest.mark.parametrize("cls", [DPSGDClassifier, DPSGDRegressor])
def test_fit_is_charged_as_its_statement_says(make, ledger, records, cls):
    model = make(cls).fit(*records)
    (charge,) = ledger.history
    assert charge.statement == model.privacy_
    assert charge.estimator == cls.__name__
    assert charge.status == "fitted"


def test_clones_charge_one_budget(make, ledger, records):
    clf = make()
    clone(clf).fit(*records)
    clone(clf).fit(*records)
    assert len(ledger.history) == 2


def test_fit_that_overspends_draws_nothing_and_changes_nothing(
    make, ledger, records, draws
):
    clf = make(noise_multiplier=0.6).fit(*records)
    history, state = ledger.history, dict(vars(clf))
    draws.clear()
    with pytest.raises(BudgetExceededError, match="One more fit may have epsilon"):
        clf.fit(*records)
    assert draws == []
    assert ledger.history == history
    assert vars(clf)["privacy_"] is state["privacy_"]
    assert vars(clf)["parameters_"] is state["parameters_"]


def test_fit_is_charged_before_its_first_draw(make, records, draws, plant):
    genuine = plant.genuine("charge of a ledger")

    def charge(self, *args, **kwargs):
        assert draws == ["bernoulli"]  # who is in the first batch stays here
        return genuine(self, *args, **kwargs)

    plant("charge of a ledger", charge)
    make(expected_batch_size=8).fit(*records)
    assert draws == ["bernoulli", "gaussian"] * 3


def test_fit_draws_nothing_where_the_ledger_fails(make, records, draws, plant):
    def full(*_, **__):
        raise LedgerError("database or disk is full")

    plant("row of a charge", full)
    clf = make()
    with pytest.raises(LedgerError, match="full"):
        clf.fit(*records)
    assert "gaussian" not in draws
    assert not hasattr(clf, "privacy_")


def test_fit_that_fails_stays_charged(make, ledger, records):
    with pytest.raises(FloatingPointError, match="the budget is spent"):
        make(optimizer="sgd", learning_rate=1e38, clip_norm=1e6).fit(*records)
    assert [charge.status for charge in ledger.history] == ["asked"]


@pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
@pytest.mark.parametrize(
    "params", [{"random_state": 1}, {"noise_multiplier": None, "epsilon": np.inf}]
)
def test_fits_that_are_not_private_are_not_charged(make, ledger, records, params):
    with pytest.raises(PrivacyError, match="must have a finite epsilon"):
        make(**params).fit(*records)
    assert ledger.history == []


def test_refused_ledgers_and_data_are_not_charged(make, ledger, records, tmp_path):
    X, y = records
    with pytest.raises(TypeError, match="ledger must be None or a PrivacyLedger"):
        make().set_params(ledger="x.ledger").fit(X, y)
    with pytest.raises(ValueError, match="inconsistent lengths"):
        make().fit(X, y[:-1])
    with pytest.raises(TypeError, match="from gradients and parameters alone"):
        make(optimizer=optax.lbfgs()).fit(X, y)
    empty = optax.contrib.galore(0.01)
    with pytest.raises(ValueError, match="optimizer must have no empty arrays"):
        make(optimizer=empty, checkpoint_dir=tmp_path / "kept").fit(X, y)
    assert ledger.history == []


class Ragged(nnx.Module):
    """An operation that JAX takes of one record, and has no rule for under vmap."""

    def __init__(self, shape, n_outputs, *, rngs):
        self.kernel = nnx.Param(jnp.ones((2, *shape, n_outputs)))

    def __call__(self, x):
        return jax.lax.ragged_dot(x, self.kernel[...], jnp.array([len(x), 0]))


def test_a_network_without_gradients_of_records_is_not_charged(make, ledger, records):
    """The first batch ended the fit, which had spent its budget."""
    with pytest.raises(TypeError, match="a gradient of each record under"):
        make().set_params(model=Ragged).fit(*records)
    assert ledger.history == []


def test_a_saved_network_does_not_hold_its_ledger(make, records, tmp_path):
    save(make().fit(*records), tmp_path / "model")
    assert load(tmp_path / "model").ledger is None
    assert "x.ledger" not in (tmp_path / "model" / "model.json").read_text()
