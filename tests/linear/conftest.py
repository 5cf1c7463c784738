"""Small data, and a spy that sees every exact sum entering the mechanism."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from privfeat import DPFC, DPAdamLinear, DPLeastSquares, DPNewton
from privfeat.core.mechanisms import GaussianMechanism

ESTIMATORS = [DPLeastSquares, DPNewton, DPFC, DPAdamLinear]


@dataclass
class Released:
    name: str
    exact: np.ndarray
    release: object

    @property
    def noise(self):
        return self.release.value - self.exact


@dataclass
class Spy:
    """Records what is released; with ``answers`` it returns those instead."""

    calls: list[Released] = field(default_factory=list)
    answers: list[Released] | None = None

    def of(self, name):
        return [call for call in self.calls if call.name == name]

    def start(self, answers=None):
        self.calls, self.answers = [], answers


@pytest.fixture
def spy(monkeypatch):
    spy, genuine = Spy(), GaussianMechanism.release

    def release(self, name, exact, *, symmetric=False):
        drawn = genuine(self, name, exact, symmetric=symmetric)
        if spy.answers is not None:
            drawn = spy.answers[len(spy.calls)].release
        spy.calls.append(Released(name, exact.value.copy(), drawn))
        return drawn

    monkeypatch.setattr(GaussianMechanism, "release", release)
    return spy


@pytest.fixture(params=ESTIMATORS, ids=lambda cls: cls.__name__)
def estimator(request):
    return request.param


@pytest.fixture
def three_classes():
    """Thirty-one records, four features, three separated classes of unequal size.

    Unequal, because a balanced intercept has a gradient of zero at the start, whose
    rounding Adam would turn into a full step.
    """
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([0, 1, 2], [8, 10, 13]))
    X = rng.normal(size=(31, 4)) + 2.0 * np.eye(3, 4)[y]
    return X, y


@pytest.fixture
def two_classes(three_classes):
    X, y = three_classes
    return X[y < 2], y[y < 2]
