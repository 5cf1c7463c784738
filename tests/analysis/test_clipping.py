"""What the recipe tries, and what it takes."""

import numpy as np
import pytest
from sklearn.base import clone

from privfeat import DPSGDClassifier
from privfeat.analysis.tuning.clipping import clipping_recipe

pytestmark = pytest.mark.slow

PRIVATE = DPSGDClassifier(
    model="mlp",
    classes=[0, 1],
    epsilon=8.0,
    expected_batch_size=200,
    n_iter=4,
    optimizer="sgd",
    accounting="rdp",  # in milliseconds
)
# accuracies by step, clip norm and rate; what is not here is 0.5
SCORES = {
    ("no clipping", "inf", "0.1"): 0.9,
    ("clipping", "0.01", "0.1"): 0.7,
    ("clipping", "0.1", "0.1"): 0.885,
    ("clipping", "1", "0.1"): 0.9,
    ("noise", "0.1", "0.2"): 0.8,
    ("same product", "0.4", "0.05"): 0.82,
}
RATES = {"learning_rates": [0.1, 0.3], "clip_norms": [1.0, 0.01, 0.1]}


@pytest.fixture
def fitted(plant):
    """The parameters of each fit, whose accuracies are those of the table."""
    seen = {}

    def add(self, name, params):
        step, _, rest = name.partition(": clip norm ")
        norm, _, rate = rest.partition(", rate ")
        seen[name] = params
        self._known[name] = [SCORES.get((step, norm, rate), 0.5)]

    plant("fit on public records", add)
    return seen


def rows(n):
    return np.zeros((n, 3), np.float32), np.arange(n) % 2


def found(n_public=100, estimator=PRIVATE, **options):
    data = rows(n_public)
    return clipping_recipe(estimator, *data, *data, n_samples=1000, **RATES | options)


@pytest.mark.parametrize("noise", [{}, {"noise": "banded", "bands": 2}])
def test_recipe_fits_batches_in_proportion_to_the_records(plant, noise):
    sizes = set()

    def add(self, name, params):
        sizes.add(self._estimator.expected_batch_size)
        self._known[name] = [0.5]

    plant("fit on public records", add)
    found(estimator=clone(PRIVATE).set_params(accounting="pld", **noise))
    assert [*sizes] == pytest.approx([20.0])


def test_recipe_takes_the_smallest_norm_that_does_not_hurt(fitted):
    recipe = found()
    assert recipe.close
    norms = [trial.clip_norm for trial in recipe.trials if trial.step == "noise"]
    assert norms == [0.1] * 5
    rates = [trial.learning_rate for trial in recipe.trials if trial.step == "noise"]
    assert rates == [0.025, 0.05, 0.1, 0.2, 0.4]
    products = [t for t in recipe.trials if t.step == "same product"]
    assert {round(t.clip_norm * t.learning_rate, 9) for t in products} == {0.02}
    assert recipe.chosen.clip_norm == 0.4
    assert recipe.chosen.learning_rate == 0.05


@pytest.mark.slow
def test_recipe_says_if_every_norm_hurts(fitted):
    recipe = found(clip_norms=[0.01, 0.02])
    assert not recipe.close
    assert recipe.trials[4].clip_norm == 0.01


@pytest.mark.slow
def test_fits_clip_and_add_noise_as_each_step_says(fitted):
    found()
    noise = PRIVATE.planned(1000).releases[0].noise_multiplier
    for name, params in fitted.items():
        plain = name.startswith("no clipping")
        assert params["epsilon"] == (np.inf if plain else None)
        if plain:
            assert params["noise_multiplier"] is None
        elif name.startswith("clipping"):
            assert params["noise_multiplier"] == 0.0
        else:  # a tenth of the records, and of the batch
            assert params["noise_multiplier"] == pytest.approx(0.1 * noise)


@pytest.mark.slow
def test_more_public_records_than_private_ones_change_no_noise(fitted):
    recipe = found(n_public=3000)
    noise = recipe.chosen.noise_multiplier
    (last,) = (p for n, p in fitted.items() if n.endswith("clip norm 0.4, rate 0.05"))
    assert last["noise_multiplier"] == noise


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"learning_rates": []}, "learning_rates must hold"),
        ({"clip_norms": [0.0]}, "clip_norms must be"),
        ({"clip_norms": [np.nan]}, "clip_norms must be"),
        ({"tolerance": 1.5}, "tolerance must be"),
        ({"n_repeats": 0}, "n_repeats must be"),
        ({"n_public": 4}, "X must hold a record"),
    ],
)
def test_recipe_refuses_what_it_cannot_try(fitted, options, rule):
    with pytest.raises(ValueError, match=rule):
        found(**options)
    assert not fitted


@pytest.mark.parametrize(
    ("params", "rule"),
    [
        ({"optimizer": "adam"}, "optimizer must be one of"),
        ({"epsilon": np.inf}, "epsilon must be finite"),
        ({"clip_factor": "automatic"}, "clipping must be"),
        ({"clipping": "adaptive"}, "clipping must be"),
        ({"checkpoint_dir": "x"}, "checkpoint_dir and"),
    ],
)
def test_recipe_refuses_other_estimators(fitted, params, rule):
    other = DPSGDClassifier(**PRIVATE.get_params() | params)
    with pytest.raises(ValueError, match=rule):
        found(estimator=other)
    assert not fitted
