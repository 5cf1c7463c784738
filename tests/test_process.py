"""MLflow's autologging writes nothing of private records while others read them."""

import os
import platform
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from types import ModuleType

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.frozen import FrozenEstimator

from privfeat import DPLeastSquares, PrivatePipeline, TemperatureScaling, _process
from privfeat._messages import without_data
from privfeat.metrics import private_evaluation

MODULE = "mlflow.utils.autologging_utils"
X = np.random.default_rng(0).normal(size=(60, 3))
Y = np.arange(60) % 2
LOGGED = []


@pytest.fixture
def mlflow(monkeypatch):
    """Stand in for MLflow: what it patches appends to ``LOGGED`` unless it is off."""

    @contextmanager
    def disable_autologging():
        module.logs = False
        yield
        module.logs = True

    module = ModuleType(MODULE)
    module.logs, module.disable_autologging = True, disable_autologging
    monkeypatch.setitem(sys.modules, MODULE, module)
    LOGGED.clear()
    return module


def patched(rows):
    if sys.modules[MODULE].logs and np.any(rows):  # rows of zeros are a trial
        LOGGED.append(np.array(rows))
    return rows


class Model(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_, self.n_features_in_ = np.arange(2), X.shape[1]
        return self

    def predict(self, X):
        return np.argmax(self.predict_proba(X), axis=1)

    def predict_proba(self, X):
        right = 1 / (1 + np.exp(-patched(X)[:, 0]))
        return np.column_stack([1 - right, right])


class Step(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return patched(X)


@pytest.mark.usefixtures("mlflow")
def test_a_model_that_is_measured_or_calibrated_is_not_logged():
    model = Model().fit(X, Y)
    private_evaluation(model, X, Y, epsilon=1.0, delta=1e-6)
    TemperatureScaling(model, epsilon=1.0).fit(X, Y)
    assert LOGGED == []
    model.predict(X)  # asked by the user
    assert len(LOGGED) == 1


@pytest.mark.usefixtures("mlflow")
def test_a_step_of_a_pipeline_is_not_logged():
    steps = [
        ("step", FrozenEstimator(Step().fit(X))),
        ("fit", DPLeastSquares(classes=[0, 1])),
    ]
    pipeline = PrivatePipeline(steps, epsilon=1.0, delta=1e-6)
    pipeline.fit(X, Y)
    assert LOGGED == []


def test_blocks_in_others_and_in_other_threads_keep_it_off(mlflow):
    inside, done = Event(), Event()

    def hold():
        inside.set()
        done.wait(60)

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(without_data, hold)
        assert inside.wait(60)
        assert without_data(lambda: without_data(patched, X) is X and not mlflow.logs)
        assert not mlflow.logs  # the other thread is within
        done.set()
        other.result()
    assert mlflow.logs
    assert LOGGED == []


def test_a_version_without_a_switch_is_refused(mlflow):
    del mlflow.disable_autologging
    with pytest.raises(RuntimeError, match="autologging must be off"):
        without_data(np.asarray, X)


def test_a_processor_is_described_by_what_code_is_chosen_by(monkeypatch):
    found = _process.processor()
    assert found == _process.processor()
    assert found["machine"] == platform.machine()
    if sys.platform == "linux" and platform.machine() == "x86_64":
        assert "sse2" in found["flags"].split()
        assert "model name" in found
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {5}, raising=False)
    assert _process.processor()["cores"] == "1"
    monkeypatch.delattr(os, "sched_getaffinity")
    assert _process.processor()["cores"] == str(os.cpu_count())


def test_a_processor_that_no_file_describes_has_a_name(monkeypatch):
    def read_text(path, encoding):
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", read_text)
    monkeypatch.setattr(platform, "processor", lambda: "arm")
    assert {*_process.processor()} == {"machine", "processor", "cores"}
    assert _process.processor()["processor"] == "arm"
