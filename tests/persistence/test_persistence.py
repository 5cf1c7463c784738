import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from privfeat import (
    DPFC,
    DPAdamLinear,
    DPLeastSquares,
    DPLeastSquaresRegressor,
    DPNearestMean,
    DPNewton,
)
from privfeat.exceptions import PrivacyWarning
from privfeat.persistence import (
    ModelFileError,
    load,
    load_class_names,
    load_statement,
    save,
)
from tests.persistence.conftest import N_FEATURES, fit, make_data, rewrite


def assert_same_model(loaded, original):
    assert type(loaded) is type(original)
    assert vars(loaded).keys() == vars(original).keys()
    params, expected = loaded.get_params(), original.get_params()
    for name in expected.keys() - {"random_state"}:
        np.testing.assert_equal(params[name], expected[name], err_msg=name)
    for name in vars(original).keys() - expected.keys():
        np.testing.assert_equal(
            getattr(loaded, name), getattr(original, name), err_msg=name
        )
    assert loaded.classes_.dtype == original.classes_.dtype


@pytest.mark.parametrize(
    ("cls", "params"),
    [
        (DPLeastSquares, {}),
        (DPNewton, {"n_iter": 2}),
        (DPFC, {"n_iter": 3, "fit_intercept": False}),
        (DPAdamLinear, {"n_iter": 3}),
        (DPNearestMean, {}),
    ],
)
def test_load_returns_what_was_saved(cls, params, tmp_path):
    original = fit(cls, **params)
    save(original, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert_same_model(loaded, original)
    X, y = make_data((0, 1, 2))
    np.testing.assert_array_equal(loaded.predict_proba(X), original.predict_proba(X))
    clone(loaded).fit(X, y)  # the parameters came back in a usable form


@pytest.mark.parametrize(
    "labels", [(3, 7), ("no", "yes"), (False, True), (1.0, 2.0, 3.0), ("a", "b", "ccc")]
)
def test_load_returns_every_kind_of_label(labels, tmp_path):
    original = fit(labels=labels)
    save(original, tmp_path)
    assert_same_model(load(tmp_path), original)


@pytest.mark.parametrize("kind", [int, float, bool, np.bool_])
def test_labels_that_were_objects_of_numbers_are_kept(tmp_path, kind):
    """As ``unique`` of an object column of pandas gives them."""
    labels = np.array([kind(0), kind(1)], object)
    model = fit(labels=labels)
    save(model, tmp_path / "model")
    X, _ = make_data(labels)
    assert np.array_equal(load(tmp_path / "model").predict(X), model.predict(X))


def test_load_returns_labels_that_were_objects(tmp_path):
    labels = np.array(["a", "b", "c"], dtype=object)
    original = fit(labels=labels)
    save(original, tmp_path)
    assert_same_model(load(tmp_path), original)


def test_load_returns_feature_names(tmp_path):
    X, y = make_data((0, 1, 2))
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    original = DPLeastSquares(classes=(0, 1, 2)).fit(frame, y)
    save(original, tmp_path)
    loaded = load(tmp_path)
    assert_same_model(loaded, original)
    np.testing.assert_array_equal(loaded.predict(frame), original.predict(frame))


def test_load_returns_the_statement_of_a_fit_without_privacy(tmp_path):
    original = fit().set_params(epsilon=np.inf)
    with pytest.warns(PrivacyWarning, match="epsilon"):
        original.fit(*make_data((0, 1, 2)))
    save(original, tmp_path)
    assert load(tmp_path).privacy_ == original.privacy_
    assert load(tmp_path).get_params()["epsilon"] == np.inf


def test_load_statement_equals_that_of_the_estimator(fitted, folder):
    assert load_statement(folder) == fitted.privacy_


def test_load_class_names_returns_what_was_saved(fitted, folder, tmp_path):
    assert load_class_names(folder) is None
    save(fitted, tmp_path / "named", class_names=("ant", "bée", "cat"))
    assert load_class_names(tmp_path / "named") == ["ant", "bée", "cat"]


def test_save_never_writes_the_seed(tmp_path):
    with pytest.warns(PrivacyWarning, match="random_state"):
        original = fit(random_state=987654321)
    save(original, tmp_path)
    assert all(b"987654321" not in file.read_bytes() for file in tmp_path.iterdir())
    assert load(tmp_path).random_state is None
    assert load(tmp_path).privacy_.seeded


def test_save_refuses_an_unfitted_estimator(tmp_path):
    with pytest.raises(NotFittedError):
        save(DPFC(), tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_save_refuses_other_classes(tmp_path):
    class Derived(DPLeastSquares):
        pass

    Derived.__name__ = "DPLeastSquares"
    for estimator in (LogisticRegression(), fit(Derived), "model"):
        with pytest.raises(TypeError, match="estimator must be one of"):
            save(estimator, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_save_writes_tables_and_columns_as_arrays(tmp_path):
    """A fit takes them, and its budget is spent when it is saved."""
    prior, center = (
        pd.DataFrame(np.eye(3, N_FEATURES)),
        pd.Series(np.full(N_FEATURES, 0.1)),
    )
    save(fit(DPFC, prior=prior, center=center), tmp_path)
    loaded = load(tmp_path)
    np.testing.assert_array_equal(loaded.prior, prior)
    np.testing.assert_array_equal(loaded.center, center)


def test_save_refuses_a_parameter_without_written_form(fitted, tmp_path):
    odd = clone(fitted).fit(*make_data((0, 1, 2))).set_params(verbose=object())
    with pytest.raises(TypeError, match="verbose must be made of numbers"):
        save(odd, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_save_refuses_a_wrong_number_of_class_names(fitted, tmp_path):
    with pytest.raises(ValueError, match="class_names must have 3 entries, got 2"):
        save(fitted, tmp_path / "model", class_names=["a", "b"])


def test_save_keeps_an_earlier_model_unless_told(fitted, folder):
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    other = fit()
    with pytest.raises(FileExistsError, match="overwrite=True"):
        save(other, folder)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    save(other, folder, overwrite=True)
    assert_same_model(load(folder), other)
    assert len(list(folder.iterdir())) == 2


def test_save_refuses_a_file_as_folder(fitted, tmp_path):
    (tmp_path / "model").write_text("kept")
    with pytest.raises(FileExistsError, match="must be a folder"):
        save(fitted, tmp_path / "model")
    assert (tmp_path / "model").read_text() == "kept"


@pytest.mark.parametrize("n_renames", [0, 1])
def test_interrupted_save_leaves_the_earlier_model(
    fitted, folder, monkeypatch, n_renames
):
    rename, done = Path.replace, []

    def fail_later(self, target):
        if len(done) == n_renames:
            raise OSError("disk full")
        done.append(target)
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", fail_later)
    with pytest.raises(OSError, match="disk full"):
        save(fit(), folder, overwrite=True)
    assert_same_model(load(folder), fitted)
    assert not list(folder.glob(".*"))


def test_interrupted_first_save_is_not_taken_for_a_model(fitted, tmp_path, monkeypatch):
    def fail(self, target):
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        save(fitted, tmp_path / "model")
    with pytest.raises(ModelFileError, match=r"it has no model\.json"):
        load(tmp_path / "model")


@pytest.mark.parametrize("center", [True, False])
def test_load_returns_the_center(center, tmp_path):
    original = fit(center=center)
    if center:
        original.center_ = np.array([0.1, -0.2, 0.3, 0.0])
    assert np.any(original.center_ != 0.0) == center
    save(original, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.center is center
    np.testing.assert_array_equal(loaded.center_, original.center_)
    X, _ = make_data((0, 1, 2))
    scores = loaded.decision_function(X)
    np.testing.assert_array_equal(scores, original.decision_function(X))


def test_load_returns_a_model_from_before_there_was_exact_noise(folder):
    document = json.loads((folder / "model.json").read_text())
    del document["params"]["arithmetic"], document["privacy"]["arithmetic"]
    rewrite(folder, **document)
    assert load(folder).arithmetic == load_statement(folder).arithmetic == "float64"


def test_load_returns_a_model_from_before_sums_of_users_were_clipped(tmp_path):
    """Their number was bounded, and the default of today would be another fit."""
    X, y = make_data((0, 1, 2))
    options = {"max_group_size": 2, "user_bound": "count"}
    then = DPLeastSquaresRegressor(**options, target_bounds=(0, 2), n_iter=1)
    save(then.fit(X, y, groups=np.arange(30) // 2), tmp_path / "model")
    document = json.loads((tmp_path / "model" / "model.json").read_text())
    del document["params"]["user_bound"], document["params"]["n_iter"]
    rewrite(tmp_path / "model", **document)
    loaded = load(tmp_path / "model")
    assert loaded.get_params() == then.get_params()


@pytest.mark.slow
def test_a_loaded_model_predicts_without_a_device(fitted, folder):
    """JAX has no device in the process, so any use of it would fail, as a fit does."""
    code = f"""
import numpy as np, privfeat
X = np.array({make_data((0, 1, 2))[0].tolist()})
model = privfeat.load({str(folder)!r})
print(model.predict(X).tolist(), model.predict_proba(X).shape)
try:
    model.fit(X, model.predict(X))
except RuntimeError as error:
    print("nowhere" in str(error))
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"JAX_PLATFORMS": "nowhere"},
    )
    predicted = fitted.predict(make_data((0, 1, 2))[0]).tolist()
    assert done.stdout.splitlines() == [f"{predicted} (30, 3)", "True"]
