"""Whole fits for users: what they state, are charged, take and refuse."""

import numpy as np
import pytest
from flax import nnx

from privfeat import DPSGDClassifier, DPSGDRegressor, PrivacyLedger
from tests.combinations import few
from tests.networks.training.users import SMALL, norm_of, two_layers

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning"),
]


@pytest.mark.slow
def test_the_statement_is_of_users(of_users):
    X, y, users = of_users
    params = SMALL | {"expected_batch_size": 4, "n_iter": None, "epochs": 2}
    statement = DPSGDClassifier(**params).fit(X, y, users).privacy_
    (release,) = statement.releases
    assert statement.unit == "user"
    assert release.sampling_prob == 0.4
    assert release.count == 5  # of ten users, four at a time, twice
    assert release.l2_sensitivity == pytest.approx(1.0, rel=1e-5)
    assert "that of a user's records at most 3 count" in statement.public
    assert not any("number of records" in fact for fact in statement.public)
    # as of ten records, each protected on its own
    single = params | {"max_group_size": None}
    alone = DPSGDClassifier(**single).fit(X[:10], y[:10]).privacy_
    assert statement.epsilon == alone.epsilon
    replaced = params | {"adjacency": "replace_one", "expected_batch_size": None}
    statement = DPSGDClassifier(**replaced).fit(X, y, users).privacy_
    assert statement.releases[0].l2_sensitivity == pytest.approx(2.0, rel=1e-5)


def test_fits_of_users_are_charged_to_budgets_of_users(of_users, tmp_path):
    params = SMALL | {"random_state": None, "noise_multiplier": 2.0}
    ledgers = [
        PrivacyLedger(
            tmp_path / "x.ledger", dataset=unit, epsilon=9, delta=1e-5, unit=unit
        )
        for unit in ("user", "record")
    ]
    clf = DPSGDClassifier(**params, ledger=ledgers[0]).fit(*of_users)
    assert [charge.statement for charge in ledgers[0].history] == [clf.privacy_]
    with pytest.raises(ValueError, match="unit must be 'record'"):
        clf.set_params(ledger=ledgers[1]).fit(*of_users)


def test_the_default_is_the_mean_of_the_updates(of_users, released):
    params = SMALL | {"noise_multiplier": None, "epsilon": np.inf, "local_epochs": 2}
    frozen = DPSGDClassifier(**params | {"learning_rate": 1e-30}).fit(*of_users)
    clf = DPSGDClassifier(**params).fit(*of_users)
    names = list(clf.parameters_)
    moved = [frozen.parameters_[n] - clf.parameters_[n] for n in names]
    mean = released[1] / 10 * 2.0**60
    np.testing.assert_allclose(
        np.concatenate([m.ravel() for m in moved]), mean, 0, 1e-6
    )


@pytest.mark.parametrize(
    "params",
    few(
        1,
        [
            {"optimizer": "adam", "ema_decay": 0.9, "local_batch_size": 2},
            {"clipping": "adaptive", "clip_style": "layerwise", "local_epochs": 2},
            {"augmentation": "crop_flip", "n_copies": 2, "frozen": ("layers/0",)},
        ],
    ),
)
def test_the_other_parameters_work_with_groups(of_users, released, params):
    _, y, users = of_users
    images = np.random.default_rng(0).integers(0, 256, (30, 4, 4, 1), np.uint8)

    def model(shape, n_outputs, *, rngs):
        flat = two_layers((16,), n_outputs, rngs=rngs)
        return nnx.Sequential(lambda x: x.reshape(len(x), -1), *flat.layers)

    clf = DPSGDClassifier(**SMALL | {"model": model, "n_iter": 2} | params)
    clf.fit(images, y, users)
    assert norm_of(released) <= 10.0
    assert all(np.all(np.isfinite(leaf)) for leaf in clf.parameters_.values())


@pytest.mark.slow
def test_users_teach_a_regressor():
    draw = np.random.default_rng(0)
    X = draw.uniform(-1, 1, (900, 3))
    y, users = X @ [0.5, -0.3, 0.1], np.arange(900) // 3
    model = DPSGDRegressor(
        model=two_layers, noise_multiplier=0.5, n_iter=30, expected_batch_size=150,
        max_group_size=3, local_epochs=5, local_batch_size=1, local_learning_rate=0.1,
    ).fit(X, y, users)  # fmt: skip
    assert model.score(X, y) > 0.7


@pytest.mark.parametrize(
    "params",
    [
        {name: value}
        for name in (
            "max_group_size", "local_epochs", "local_batch_size", "local_learning_rate"
        )
        for value in (np.nan, -1, 0, True, "x")
    ]
    + [
        {"max_group_size": None}, {"engine": "fast"}, {"optimizer": "sgld"},
        {"optimizer": "sghmc"},
        {"expected_batch_size": 11},
    ],
)  # fmt: skip
def test_what_does_not_go_with_groups_is_refused(of_users, released, params):
    with pytest.raises((TypeError, ValueError)):
        DPSGDClassifier(**SMALL | params).fit(*of_users)
    assert not released


def test_local_training_without_groups_is_refused(of_users, released):
    X, y, _ = of_users
    with pytest.raises(ValueError, match="groups must be given"):
        DPSGDClassifier(**SMALL).fit(X, y)
    params = SMALL | {"max_group_size": None, "local_epochs": 2}
    with pytest.raises(ValueError, match="max_group_size must be given"):
        DPSGDClassifier(**params).fit(X, y)
    assert not released
