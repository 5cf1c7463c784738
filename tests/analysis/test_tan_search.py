import json
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from privfeat.analysis.tan import constant_tan_settings
from privfeat.analysis.tan_search import simulate_settings

X, Y = np.zeros((600, 2)), np.arange(600) % 2
# Table 3 of Sander et al. 2023: a batch of 256 for 72,000 steps at a rate of 8
CANDIDATES = constant_tan_settings(16_384, 72_000, 8.0, step_factors=[0.25, 1.0])


class Trained(BaseEstimator):
    """Stands for a network: writes down what it is fitted with, and may be stopped."""

    fitted: ClassVar = []

    def __init__(
        self,
        epsilon=1.0,
        noise_multiplier=None,
        expected_batch_size=256,
        n_iter=None,
        learning_rate=None,
        size=1,
    ):
        self.epsilon, self.noise_multiplier = epsilon, noise_multiplier
        self.expected_batch_size, self.n_iter = expected_batch_size, n_iter
        self.learning_rate, self.size = learning_rate, size

    def fit(self, X, y):
        if len(self.fitted) == 3:
            raise KeyboardInterrupt
        self.fitted.append(self.get_params())
        return self

    def score(self, X, y):
        return 1.0 / self.n_iter


@pytest.fixture(autouse=True)
def none_fitted():
    Trained.fitted.clear()


def search(path=None, **changed):
    options = {"noise_multiplier": 2.5, "factor": 64.0, "path": path} | changed
    estimator = Trained(size=options.pop("size", 1))
    return simulate_settings(estimator, CANDIDATES, X, Y, X, Y, **options)


def test_simulations_are_those_of_table_3():
    found = search()
    assert [(f["expected_batch_size"], f["n_iter"]) for f in Trained.fitted] == [
        (512.0, 18_000),
        (256.0, 72_000),
    ]
    assert {f["noise_multiplier"] for f in Trained.fitted} == {2.5 / 64}
    assert [f["learning_rate"] for f in Trained.fitted] == [32.0, 8.0]
    assert [one.settings for one in found] == CANDIDATES
    assert found[0].accuracy > found[1].accuracy


def test_a_search_goes_on_where_it_was_interrupted(tmp_path):
    path = tmp_path / "search.json"
    with pytest.raises(KeyboardInterrupt):
        search(path, n_repeats=2)
    before = json.loads(path.read_text())["accuracies"]
    assert sum(map(len, before.values())) == 3
    Trained.fitted.clear()
    found = search(path, n_repeats=2)
    assert len(Trained.fitted) == 1
    assert [len(one.accuracies) for one in found] == [2, 2]
    Trained.fitted.clear()
    assert search(path, n_repeats=2) == found
    assert not Trained.fitted


def test_a_file_of_another_search_is_refused(tmp_path):
    path = tmp_path / "search.json"
    search(path)
    for changed in ({"size": 2}, {"noise_multiplier": 3.0}):
        with pytest.raises(ValueError, match="Name a new file"):
            search(path, **changed)
    path.write_text("[]")
    with pytest.raises(ValueError, match="must be a file of a search"):
        search(path)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"factor": 16.0}, "batches of at most the 600 public records"),
        ({"factor": 0.5}, "factor must be"),
        ({"noise_multiplier": 0.0}, "noise_multiplier must be"),
        ({"n_repeats": 0}, "n_repeats must be"),
    ],
)
def test_searches_refuse_what_cannot_be(bad, message):
    with pytest.raises(ValueError, match=message):
        search(**bad)
    assert not Trained.fitted
