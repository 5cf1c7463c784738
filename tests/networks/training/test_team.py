"""Networks trained by several processes, here threads; `test_processes` has real ones.

What they release, and what each of them gets, is what one process gives.
"""

import numpy as np
import optax
import pytest

from privfeat import DPSGDClassifier, DPSGDRegressor, PrivacyLedger
from privfeat.exceptions import LedgerError, PrivacyError
from privfeat.networks.images.records import TO_UNIT_RANGE
from privfeat.networks.models import MLP
from tests.networks.teams import ThreadTeam
from tests.networks.tiny import TINY

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning"),
]

FULL = TINY | {"expected_batch_size": None, "n_iter": 2}  # whose cost is quick to find


def check_same_fit(found, expected):
    assert not isinstance(found, Exception), found
    assert found.privacy_ == expected.privacy_
    assert found.parameters_.keys() == expected.parameters_.keys()
    for name, leaf in expected.parameters_.items():
        np.testing.assert_array_equal(found.parameters_[name], leaf, err_msg=name)


@pytest.mark.parametrize("params", [{}, {"clipping": "adaptive", "ema_decay": 0.9}])
def test_several_processes_train_the_network_of_one(records, together, params):
    alone = DPSGDClassifier(**FULL | params).fit(*records)
    for found in together(lambda _: DPSGDClassifier(**FULL | params).fit(*records)):
        check_same_fit(found, alone)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"clipping": "adaptive", "expected_batch_size": 20},
        {"optimizer": "sgld", "clip_style": "layerwise"},
        {"engine": "reference", "microbatch_size": 3, "frozen": ("layers/0",)},
    ],
)
@pytest.mark.parametrize("size", [2, 3])
def test_samples_of_several_processes_are_those_of_one(records, together, params, size):
    alone = DPSGDClassifier(**TINY | params).fit(*records)
    fits = together(lambda _: DPSGDClassifier(**TINY | params).fit(*records), size=size)
    for found in fits:
        check_same_fit(found, alone)


def test_several_processes_train_the_network_of_one_for_users(of_users, together):
    X, y, users = of_users
    params = FULL | {"max_group_size": 2, "microbatch_size": 3}
    alone = DPSGDClassifier(**params).fit(X, y, users)
    for found in together(lambda _: DPSGDClassifier(**params).fit(X, y, users)):
        check_same_fit(found, alone)


def test_several_processes_train_the_regression_of_one(records, together):
    X, _ = records
    params = {name: value for name, value in TINY.items() if name != "classes"}
    alone = DPSGDRegressor(**params).fit(X, X[:, :2])
    for found in together(lambda _: DPSGDRegressor(**params).fit(X, X[:, :2])):
        check_same_fit(found, alone)


def test_every_record_counts_in_one_process(records, together, plant):
    """What the processes sum by themselves adds up to the sum of one, exactly."""
    sums, release = {}, plant.genuine("release of a sum")

    def watched(self, name, exact, **options):
        sums.setdefault(self._team.index, []).append((exact.total, exact.grid_step))
        return release(self, name, exact, **options)

    plant("release of a sum", watched)
    DPSGDClassifier(**FULL).fit(*records)
    alone = sums.pop(0)
    together(lambda _: DPSGDClassifier(**FULL).fit(*records))
    assert sums.keys() == {0, 1}
    for whole, *parts in zip(alone, *sums.values(), strict=True):
        assert len({grid_step for _, grid_step in (whole, *parts)}) == 1
        np.testing.assert_array_equal(whole[0], sum(total for total, _ in parts))
        assert all(np.any(total) for total, _ in parts)


@pytest.mark.parametrize("rows", ["shared", "own"])
def test_noise_is_drawn_once_and_all_get_the_same(records, together, drawn, rows):
    X, y = records
    params = TINY | {"random_state": None}

    def fit(index):
        part = slice(None) if rows == "shared" else slice(index, None, 2)
        return DPSGDClassifier(**params).fit(X[part], y[part])

    first, second = together(fit, rows=rows)
    check_same_fit(first, second)
    assert len(drawn) == first.n_iter_ == 4
    assert first.privacy_.releases[0].sampling_prob == 8 / 30


def test_processes_with_rows_of_their_own_sum_all_of_them(records, together, released):
    X, y = records
    alone = DPSGDClassifier(**FULL).fit(X, y)
    expected = released.copy()
    parts = slice(0, 18), slice(18, None)
    released.clear()
    fits = together(
        lambda i: DPSGDClassifier(**FULL).fit(X[parts[i]], y[parts[i]]), rows="own"
    )
    for found in fits:
        assert found.privacy_ == alone.privacy_
        for name, leaf in alone.parameters_.items():
            np.testing.assert_allclose(found.parameters_[name], leaf, atol=1e-4)
    # of the first step the parts of both, in any order
    np.testing.assert_allclose(released[0] + released[1], expected[0], atol=1e-4)


def test_samples_of_rows_of_their_own_are_independent(records, together, plant):
    X, y = records
    masks, sample = [], plant.genuine("Poisson sample")

    def watched(key, n, probability):
        masks.append(sample(key, n, probability))
        return masks[-1]

    plant("Poisson sample", watched)
    params = TINY | {"n_iter": 2, "expected_batch_size": 15}
    fits = together(
        lambda i: DPSGDClassifier(**params).fit(X[i::2], y[i::2]), rows="own"
    )
    assert not any(isinstance(fit, Exception) for fit in fits)
    assert len({mask.tobytes() for mask in masks}) == len(masks) == 4


OTHERS = {
    "noise_multiplier": 2.0,
    "clip_norm": 2.0,
    "clip_style": "layerwise",
    "clip_factor": "global",
    "n_iter": 5,
    "expected_batch_size": 9,
    "delta": 1e-6,
    "random_state": 2,
    "learning_rate": 0.5,
    "engine": "reference",
    "frozen": ("layers/0",),
}


@pytest.mark.parametrize("name", OTHERS)
def test_processes_that_differ_in_a_parameter_are_refused(
    records, together, released, tmp_path, name
):
    ledger = PrivacyLedger(tmp_path / "l", dataset="x", epsilon=1e4, delta=1e-4)
    both = [FULL, FULL | {name: OTHERS[name]}]
    for found in together(
        lambda i: DPSGDClassifier(ledger=ledger, **both[i]).fit(*records)
    ):
        assert isinstance(found, PrivacyError)
        assert "all processes must have the same fit" in str(found)
    assert not released
    assert not ledger.history


def test_processes_with_the_same_rows_of_their_own_are_refused(
    records, together, released
):
    for found in together(lambda _: DPSGDClassifier(**FULL).fit(*records), rows="own"):
        assert isinstance(found, PrivacyError)
        assert "every record would count twice" in str(found)
    assert not released


def test_processes_with_rows_of_their_own_must_be_given_classes(records, together):
    X, y = records
    params = FULL | {"classes": None}
    for found in together(
        lambda i: DPSGDClassifier(**params).fit(X[i::2], y[i::2]), rows="own"
    ):
        assert isinstance(found, ValueError)
        assert "classes must be given" in str(found)


@pytest.mark.parametrize(("rows", "message"), [("own", "must be None"), ("shared", "")])
def test_other_users_in_each_process_are_refused(of_users, together, rows, message):
    X, y, users = of_users

    def fit(index):
        part = slice(None) if rows == "shared" else slice(index, None, 2)
        given = np.roll(users, index)[part]  # of as many users
        clf = DPSGDClassifier(**FULL | {"max_group_size": 2})
        return clf.fit(X[part], y[part], given)

    for found in together(fit, rows=rows):
        assert isinstance(found, PrivacyError)
        assert message in str(found)


def test_processes_with_other_batches_are_refused(records, together):
    """As devices of other numbers make them."""
    params = [FULL | {"microbatch_size": size} for size in (4, 8)]
    for found in together(lambda i: DPSGDClassifier(**params[i]).fit(*records)):
        assert isinstance(found, PrivacyError)
        assert "the same devices" in str(found)


def test_other_scales_of_bytes_are_refused(records, together, released, plant):
    """As with weights of timm in one process, and of a fit in another."""
    scales = [TO_UNIT_RANGE, TO_UNIT_RANGE / 2]
    plant("scale of pixels", lambda *_: scales.pop())
    for found in together(lambda _: DPSGDClassifier(**FULL).fit(*records)):
        assert isinstance(found, PrivacyError)
        assert "all processes must have the same fit" in str(found)
    assert not released


@pytest.mark.parametrize("momentum", [0.5, 0.9])
def test_an_optimizer_of_a_user_is_compared_by_what_it_does(
    records, together, momentum
):
    def fit(index):
        optimizer = optax.sgd(0.1, momentum=[0.9, momentum][index])
        return DPSGDClassifier(**FULL | {"optimizer": optimizer}).fit(*records)

    first, second = together(fit)
    if momentum == 0.9:
        check_same_fit(first, second)
    else:
        assert "all processes must have the same fit" in str(first)


def test_a_network_of_a_user_is_compared_by_what_it_does(records, together):
    def made(width):
        def model(shape, n_outputs, *, rngs):
            return MLP(shape, n_outputs, widths=(width,), rngs=rngs)

        return model

    def fit(widths):
        return lambda index: DPSGDClassifier(
            **FULL | {"model": made(widths[index]), "n_iter": 1}
        ).fit(*records)

    check_same_fit(*together(fit((4, 4))))
    first, _ = together(fit((4, 5)))
    assert "all processes must have the same fit" in str(first)


def test_the_first_process_charges_for_all(records, together, tmp_path):
    ledger = PrivacyLedger(tmp_path / "l", dataset="x", epsilon=1e4, delta=1e-4)
    params = FULL | {"ledger": ledger, "random_state": None}
    check_same_fit(*together(lambda _: DPSGDClassifier(**params).fit(*records)))
    (charge,) = ledger.history
    assert charge.status == "fitted"


def test_restore_is_for_one_process(together, tmp_path):
    clf = DPSGDClassifier(**FULL | {"checkpoint_dir": tmp_path})
    for found in together(lambda _: clf.restore()):
        assert "restore must run in one process" in str(found)


def test_every_batch_is_summed_by_one_process():
    for n in range(8):
        parts = [ThreadTeam(index, 3).part(n) for index in range(3)]
        assert sorted(place for part in parts for place in part) == [*range(n)]


class Unreadable(PrivacyLedger):
    """A ledger that is lost before its history is read."""

    @property
    def history(self):
        raise LedgerError("the ledger is gone")


def test_all_processes_end_if_the_first_cannot_say_what_is_left(
    records, together, tmp_path
):
    """The others waited for its part of the first step."""
    budget = {"dataset": "x", "epsilon": 9.0, "delta": 1e-3}
    ledger = Unreadable(tmp_path / "ledger", **budget)
    params = FULL | {"ledger": ledger, "random_state": None}

    def fit(index):
        return DPSGDClassifier(**params | {"verbose": int(index == 0)}).fit(*records)

    first, second = together(fit)
    assert "the ledger is gone" in str(first)
    assert str(second).startswith(
        "every process must be able to say what the fit costs"
    )
