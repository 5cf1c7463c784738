"""What `on_step` is shown, and averages of the steps."""

import numpy as np
import pytest
from sklearn.base import clone

from privfeat import DPSGDClassifier, PrivacyLedger, load, save
from privfeat.networks.training.loop import Trainer
from privfeat.networks.training.optimizers import Average
from tests.networks.tiny import TINY

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


@pytest.fixture
def watched(records):
    """Fit with a callback; return the model, and what was shown at each step."""

    def run(**params):
        shown = {}

        def on_step(step, model):
            shown[step] = model
            model.parameters_["of the callback"] = np.zeros(1)  # changes nothing

        return DPSGDClassifier(**TINY | {"on_step": on_step} | params).fit(
            *records
        ), shown

    return run


def test_each_step_is_shown_once_and_the_last_is_the_fit(watched, records):
    clf, shown = watched()
    assert [*shown] == [1, 2, 3, 4]
    plain = DPSGDClassifier(**TINY).fit(*records)
    for name, leaf in plain.parameters_.items():
        assert np.array_equal(clf.parameters_[name], leaf)
        assert np.array_equal(shown[4].parameters_[name], leaf)
        assert not np.array_equal(shown[3].parameters_[name], leaf)
    for model in shown.values():
        model.parameters_.pop("of the callback")
    assert shown[2].privacy_ == clf.privacy_ == plain.privacy_
    assert shown[2].predict(records[0]).shape == (30,)


def test_what_is_shown_holds_nothing_of_the_records(watched, records):
    clf, shown = watched()
    known = {*vars(clf)} - {"_params_of_fit"}  # kept at the end of a fit
    assert {*vars(shown[1])} == known
    X, _ = records
    for value in vars(shown[1]).values():
        assert not (isinstance(value, np.ndarray) and len(X) in value.shape)


@pytest.mark.slow
def test_a_callback_is_not_saved_and_may_change_in_a_second_run(
    watched, tmp_path, records
):
    clf, _ = watched(checkpoint_dir=tmp_path / "steps", checkpoint_every=2)
    assert clone(clf).on_step is clf.on_step
    save(clf, tmp_path / "model")
    assert load(tmp_path / "model").on_step is None
    assert clone(clf).set_params(on_step=None).restore().n_iter_ == 4


@pytest.mark.slow
def test_an_error_of_the_callback_ends_a_fit_that_stays_charged(tmp_path, records):
    def on_step(step, model):
        raise KeyError("of the callback")

    ledger = PrivacyLedger(tmp_path / "x", dataset="x", epsilon=500.0, delta=1e-5)
    clf = DPSGDClassifier(
        **TINY | {"on_step": on_step, "ledger": ledger, "random_state": None}
    )
    with pytest.raises(KeyError, match="of the callback"):
        clf.fit(*records)
    assert len(ledger.history) == 1
    assert clf.privacy_.epsilon < np.inf
    assert not hasattr(clf, "parameters_")


@pytest.mark.slow
def test_a_fit_that_goes_on_shows_no_step_twice(tmp_path, records):
    """Steps after the last checkpoint are drawn again: nobody may have seen them."""
    ledger = PrivacyLedger(tmp_path / "x", dataset="x", epsilon=500.0, delta=1e-5)
    folder = {"checkpoint_dir": tmp_path / "steps", "checkpoint_every": 2}
    params = TINY | folder | {"ledger": ledger, "random_state": None, "n_iter": 5}
    shown, stops = [], {2, 4}

    def on_step(step, model):
        shown.append(step)
        if step in stops:
            raise KeyboardInterrupt

    for _ in stops:
        with pytest.raises(KeyboardInterrupt):
            DPSGDClassifier(**params | {"on_step": on_step}).fit(*records)
    DPSGDClassifier(**params | {"on_step": on_step}).fit(*records)
    assert shown == [2, 4, 5]
    assert len(ledger.history) == 1


@pytest.mark.slow
def test_a_fit_that_is_killed_between_checkpoints_shows_no_step_twice(
    tmp_path, records, plant
):
    shown, stops, step_of = [], [3], Trainer.step
    folder = {"checkpoint_dir": tmp_path / "steps", "checkpoint_every": 2}
    params = TINY | folder | {"on_step": lambda step, model: shown.append(step)}

    def step(self, mechanism, state, drawn):
        if state.step in stops:  # the last checkpoint is of two
            raise KeyboardInterrupt
        return step_of(self, mechanism, state, drawn)

    plant("step of training", step)
    with pytest.raises(KeyboardInterrupt):
        DPSGDClassifier(**params).fit(*records)
    stops.clear()
    DPSGDClassifier(**params).fit(*records)
    assert shown == [2, 4]


@pytest.mark.slow
def test_the_plain_mean_is_of_the_steps_after_its_start(watched):
    average, values = Average(0.0, start=0.5), np.array([5.0, 1.0, 4.0, 7.0, 9.0, 2.0])
    mean = 0.0
    for step, value in enumerate(values):
        mean += average.weight(step, 6) * (value - mean)
        start = 3 if step >= 3 else step
        assert mean == pytest.approx(values[start : step + 1].mean())
    _, plain = watched()
    clf, _ = watched(average_from=0.5)
    for name, leaf in clf.parameters_.items():
        both = [plain[step].parameters_[name] for step in (3, 4)]
        np.testing.assert_allclose(leaf, np.mean(both, axis=0), atol=1e-6)


@pytest.mark.slow
def test_of_several_processes_the_first_alone_calls_it(records, together):
    called, params = [], TINY | {"expected_batch_size": None, "n_iter": 2}

    def fit(index):
        def on_step(step, model):
            called.append((index, step))

        return DPSGDClassifier(**params | {"on_step": on_step}).fit(*records)

    alone = DPSGDClassifier(**params).fit(*records)
    for found in together(fit):
        for name, leaf in alone.parameters_.items():
            assert np.array_equal(found.parameters_[name], leaf)
    assert called == [(0, 1), (0, 2)]
