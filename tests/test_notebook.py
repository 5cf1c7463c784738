import numpy as np
import pytest
from sklearn import config_context

from privfeat import (
    DPLeastSquares,
    DPRandomizedSearch,
    DPSGDClassifier,
    TemperatureScaling,
)


@pytest.fixture(scope="module")
def fitted():
    y = np.arange(60) % 3
    return DPLeastSquares(epsilon=2.0, classes=range(3)).fit(np.eye(4)[y], y)


def test_notebook_shows_the_statement(fitted):
    shown = fitted._repr_mimebundle_()["text/html"]
    assert "epsilon = 2, delta = 1e-05" in shown
    assert "assumed public" in shown
    assert shown.startswith("<style>")  # after scikit-learn's own view
    assert "epsilon = 2, delta = 1e-05" in fitted._repr_html_()


@pytest.mark.parametrize("cls", [DPRandomizedSearch, TemperatureScaling])
def test_estimators_around_others_show_their_own_statement(fitted, cls):
    outer = cls(fitted, {}) if cls is DPRandomizedSearch else cls(fitted)
    assert "Differential privacy" not in outer._repr_mimebundle_()["text/html"]
    outer.privacy_ = fitted.privacy_
    assert "epsilon = 2, delta = 1e-05" in outer._repr_mimebundle_()["text/html"]


def test_networks_show_their_statement(fitted):
    network = DPSGDClassifier(model="mlp")
    assert "Differential privacy" not in network._repr_mimebundle_()["text/html"]
    network.privacy_ = fitted.privacy_
    assert "epsilon = 2, delta = 1e-05" in network._repr_mimebundle_()["text/html"]


def test_unfitted_estimators_look_as_in_scikit_learn(fitted):
    shown = DPLeastSquares(epsilon=2.0)._repr_mimebundle_()["text/html"]
    assert "<details open><summary><b>Differential privacy" not in shown


def test_text_display_has_no_html(fitted):
    with config_context(display="text"):
        assert set(fitted._repr_mimebundle_()) == {"text/plain"}
        assert not hasattr(fitted, "_repr_html_")


def test_statement_is_escaped(fitted, monkeypatch):
    class Statement:
        def __str__(self):
            return "<script>\n<b>"

    monkeypatch.setattr(fitted, "privacy_", Statement())
    shown = fitted._repr_mimebundle_()["text/html"]
    assert "&lt;script&gt;" in shown
    assert "&lt;b&gt;</pre>" in shown
