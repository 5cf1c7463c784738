"""What noise is drawn, and from what randomness: rows 6 to 8, 13, 14, 24, 29."""

import dataclasses
import pickle
from contextvars import copy_context

import numpy as np
import pytest
from dp_accounting import PoissonSampledDpEvent

from privfeat import DPAdamLinear, DPLeastSquares, PrivacyWarning, persistence
from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.plan import Query
from privfeat.core.noise.keys import KeyStream
from privfeat.core.sums import processes
from privfeat.core.sums.processes import Team
from privfeat.core.sums.totals import ExactSum
from tests.core.mechanisms import charged_mechanism
from tests.pitfalls.conftest import Trap, replace_arrays

quiet = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")

# 6 -- one key served several draws: every class, or step, got the same noise


def check_06(spy, make):
    """No two rows of noise are nearly parallel: 64 columns, at most 0.9 at random."""
    rng = np.random.default_rng(0)
    data = rng.normal(size=(20, 64)), np.arange(20) % 3
    for cls in (DPLeastSquares, DPAdamLinear):
        spy.start()
        make(cls, center=False, fit_intercept=False).fit(*data)
        rows = np.vstack([call.noise for call in spy.calls])
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        cosines = np.abs(rows @ rows.T)
        assert np.max(cosines - np.eye(len(rows))) < 0.9


@quiet
def test_06_classes_steps_and_blocks_have_noise_of_their_own(spy, make):
    check_06(spy, make)


@quiet
def test_06_notices_the_same_vector_for_all_classes(spy, make, plant):
    genuine = plant.genuine("Gaussian noise")

    def repeated(key, shape, stddev):
        return np.broadcast_to(genuine(key, shape[-1:], stddev), shape).copy()

    plant("Gaussian noise", repeated)
    with pytest.raises(AssertionError):
        check_06(spy, make)


@quiet
def test_06_notices_one_key_for_all_steps(spy, make, plant):
    key = KeyStream(1).draw_noise_key()
    plant("next key of noise", lambda self: key)
    with pytest.raises(AssertionError):
        check_06(spy, make)


# 7 -- the default seed was fixed, or 31 bits of NumPy's global state


def check_07(make, data):
    fitted = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        fitted.append(make(random_state=None).fit(*data))
    assert np.all(fitted[0].coef_ != fitted[1].coef_)
    assert fitted[0].privacy_.private


def test_07_two_fits_without_a_seed_differ(make, three_classes):
    check_07(make, three_classes)


def test_07_notices_the_global_seed_of_numpy(make, three_classes, plant):
    plant("bytes of the operating system", np.random.bytes)
    with pytest.raises(AssertionError):
        check_07(make, three_classes)


# 8 -- a fit repeated with the same seed on a neighbour cancels the noise


def check_08(make, data):
    with pytest.warns(PrivacyWarning, match="random_state"):
        clf = make(random_state=7).fit(*data)
    assert clf.privacy_.seeded
    assert not clf.privacy_.private
    assert "SEEDED: not private" in str(clf.privacy_)


def test_08_a_seed_is_told_and_marks_the_statement(make, three_classes):
    check_08(make, three_classes)


def test_08_notices_a_statement_that_forgets_the_seed(make, three_classes, plant):
    genuine = plant.genuine("statement of a plan")

    def forgetful(plan, **facts):
        return genuine(plan, **(facts | {"seeded": False}))

    plant("statement of a plan", forgetful)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check_08(make, three_classes)


# 13 -- an empty Poisson batch crashed, or its step was skipped and released nothing


def check_13(spy, make, data):
    spy.start()
    budget = {"epsilon": None, "noise_multiplier": 1.0, "accounting": "pld"}
    make(DPAdamLinear, n_iter=20, sampling_prob=1e-6, **budget).fit(*data)
    steps = spy.of("gradient")
    assert len(steps) == 20
    assert sum(bool(np.any(step.exact)) for step in steps) <= 2
    assert all(np.all(step.noise != 0.0) for step in steps)


@quiet
def test_13_empty_batches_are_released_with_noise_alone(spy, make, three_classes):
    check_13(spy, make, three_classes)


@quiet
def test_13_notices_empty_batches_without_noise(spy, make, three_classes, plant):
    spied = plant.genuine("release of a sum")

    def skipping(self, name, exact, *, symmetric=False):
        found = spied(self, name, exact, symmetric=symmetric)
        if name == "gradient" and not np.any(exact.value):
            found = dataclasses.replace(found, value=exact.value)
            spy.calls[-1] = dataclasses.replace(spy.calls[-1], release=found)
        return found

    plant("release of a sum", skipping)
    with pytest.raises(AssertionError):
        check_13(spy, make, three_classes)


# 14 -- shuffled batches of a fixed size were accounted as Poisson samples


def check_14():
    probability, n = 0.3, 200
    query = Query("gradient", 1.0, count=50, sampling_prob=probability)
    plan = plan_releases([query], noise_multiplier=1.0, accounting="pld")
    (event,) = plan.event().events
    assert isinstance(event.event, PoissonSampledDpEvent)
    assert event.event.sampling_probability == probability
    sampler = charged_mechanism(plan, KeyStream(0)).sampler("gradient")
    masks = np.array([sampler(n) for _ in range(50)])
    assert len(set(masks.sum(axis=1).tolist())) > 5  # sizes are random
    # 10,000 draws have a standard error of 0.0046; six of them
    assert abs(masks.mean() - probability) < 0.028
    assert len(np.unique(masks, axis=0)) == 50


def test_14_what_is_accounted_as_poisson_is_sampled_so():
    check_14()


def test_14_notices_batches_of_a_fixed_size(plant):
    def fixed(key, n_samples, probability):
        order = np.random.default_rng(key).permutation(n_samples)
        return order < n_samples * probability

    plant("Poisson sample", fixed)
    with pytest.raises(AssertionError):
        check_14()


# 24 -- every rank added noise of its own, or the noise of one was lost


class Ranks(Team):
    """A team whose broadcast leaves each process its own value."""

    def total(self, values, *_, **__):
        return values

    def from_first(self, values, *_):
        return values


def check_24():
    """The noise of all ranks together is that of one draw of the first."""
    plan = plan_releases([Query("gram", 1.0)], epsilon=1.0)
    added = []
    for index in range(8):

        def draw(index=index):
            processes._team.set(Ranks(index, 8))
            mechanism = charged_mechanism(plan, KeyStream(0, index))
            return mechanism.release("gram", ExactSum(np.zeros(100))).value

        added.append(copy_context().run(draw))
    assert np.all(added[0] != 0.0)
    total = np.sum(added, axis=0)
    # 100 draws: the stddev is within 50 % at more than six standard errors
    assert 0.5 < np.std(total) / plan["gram"].noise_stddev < 1.5
    np.testing.assert_array_equal(total, added[0])


def test_24_the_noise_of_eight_ranks_is_that_of_one():
    check_24()


def test_24_notices_noise_on_every_rank(plant):
    plant("team that draws noise", lambda: Ranks(0, 8))
    with pytest.raises(AssertionError):
        check_24()


# 29 -- what was saved brought noise back, or ran code when it was read


def check_29(make, data, folder):
    clf = make(random_state=5).fit(*data)
    persistence.save(clf, folder, overwrite=True)
    again = persistence.load(folder)
    assert again.random_state is None
    assert again.privacy_ == clf.privacy_
    assert np.any(again.fit(*data).coef_ != clf.coef_)
    replace_arrays(folder, classes_=np.array([Trap()], dtype=object))
    Trap.sprung = False
    with pytest.raises(persistence.ModelFileError):
        persistence.load(folder)
    assert not Trap.sprung


@quiet
def test_29_a_saved_model_brings_no_seed_back_and_runs_no_code(
    make, three_classes, tmp_path
):
    assert pickle.loads(pickle.dumps(Trap())) is None
    assert Trap.sprung
    check_29(make, three_classes, tmp_path)


@quiet
def test_29_notices_arrays_that_are_unpickled(
    make, three_classes, tmp_path, monkeypatch
):
    genuine = np.load

    def trusting(file, **_):
        return genuine(file, allow_pickle=True)

    monkeypatch.setattr(np, "load", trusting)
    with pytest.raises(AssertionError):
        check_29(make, three_classes, tmp_path)


@quiet
def test_29_notices_a_seed_that_is_kept(make, three_classes, tmp_path, plant):
    genuine = plant.genuine("load of a model")

    def remembering(path):
        return genuine(path).set_params(random_state=5)

    plant("load of a model", remembering)
    with pytest.raises(AssertionError):
        check_29(make, three_classes, tmp_path)
