"""A statement that is read must cost no less than its own releases."""

from dataclasses import replace

import numpy as np
import pytest

from privfeat import DPAdamLinear, DPLeastSquares, DPLeastSquaresRegressor, load, save
from privfeat.persistence import ModelFileError
from privfeat.persistence.model_checks import agrees_with_its_releases
from tests.persistence.conftest import rewrite, rewrite_arrays

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


@pytest.fixture(scope="module")
def exact(data):
    """Return the statement of releases on all records."""
    return DPLeastSquares(epsilon=1.0, classes=range(3)).fit(*data).privacy_


@pytest.fixture(scope="module")
def sampled(data):
    """Return the statement of releases on sampled records, which has no mu or rho."""
    params = {"noise_multiplier": 4.0, "sampling_prob": 0.5, "n_iter": 3}
    clf = DPAdamLinear(**params, classes=range(3), accounting="pld").fit(*data)
    assert clf.privacy_.mu is clf.privacy_.rho is None
    return clf.privacy_


@pytest.mark.parametrize("name", ["mu", "rho"])
@pytest.mark.parametrize("factor", [0.99, 1.01])
def test_mu_and_rho_must_be_those_of_the_releases(exact, name, factor):
    assert agrees_with_its_releases(exact)
    planted = replace(exact, **{name: factor * getattr(exact, name)})
    assert agrees_with_its_releases(planted) == (factor > 1.0)


@pytest.mark.parametrize("name", ["mu", "rho"])
def test_mu_and_rho_must_be_there_for_releases_on_all_records(exact, name):
    assert not agrees_with_its_releases(replace(exact, **{name: None}))


@pytest.mark.parametrize("name", ["mu", "rho"])
def test_mu_and_rho_must_not_be_there_for_sampled_records(sampled, name):
    """They would be composed with others, and no accountant gives one."""
    assert agrees_with_its_releases(sampled)
    assert not agrees_with_its_releases(replace(sampled, **{name: 1e6}))


def test_epsilon_of_sampled_records_must_be_that_of_its_accounting(data, sampled):
    params = {"noise_multiplier": 4.0, "sampling_prob": 0.5, "n_iter": 3}
    clf = DPAdamLinear(**params, classes=range(3), accounting="rdp").fit(*data)
    renyi = clf.privacy_
    assert agrees_with_its_releases(renyi)
    assert sampled.epsilon < renyi.epsilon
    assert agrees_with_its_releases(replace(renyi, accounting="pld"))
    assert not agrees_with_its_releases(replace(sampled, accounting="rdp"))


def test_noise_too_small_to_be_computed_with_is_refused(exact):
    (record, *_) = exact.releases
    tiny = replace(record, noise_multiplier=1e-200)
    assert not agrees_with_its_releases(replace(exact, releases=(tiny,)))


@pytest.mark.parametrize(
    ("other", "classes"), [("DPLeastSquares", None), (None, np.arange(1))]
)
def test_a_model_of_another_kind_is_refused(data, tmp_path, other, classes):
    """Loaded as the other class, it would predict something else."""
    X, y = data
    model = DPLeastSquaresRegressor(target_bounds=(-1.0, 3.0)).fit(X, y)
    save(model, tmp_path)
    assert np.array_equal(load(tmp_path).predict(X), model.predict(X))
    if other is None:
        rewrite_arrays(tmp_path, classes_=classes)
    else:
        rewrite(tmp_path, estimator=other)
    with pytest.raises(ModelFileError, match="classes are for a classifier"):
        load(tmp_path)


@pytest.mark.parametrize("place", ["names", "params"])
def test_text_that_no_file_can_hold_is_refused_before_a_file_is_made(
    data, tmp_path, place
):
    labels = np.array(["a", "b", "caf\udce9"])
    clf = DPLeastSquares(epsilon=1.0, classes=labels).fit(data[0], labels[data[1]])
    if place == "names":
        clf.classes = range(3)
    names = labels if place == "names" else None
    with pytest.raises(ValueError, match="must be text in UTF-8") as caught:
        save(clf, tmp_path / "model", class_names=names)
    assert "caf" not in str(caught.value)
    assert not (tmp_path / "model").exists()
