"""Networks that start from the parameters of another fit."""

import numpy as np
import pytest
from sklearn.base import clone

from privfeat import DPSGDClassifier, load, save
from privfeat.networks.training.optimizers import default_rate
from tests.combinations import few
from tests.networks.tiny import TINY

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


@pytest.fixture
def public(records, tmp_path):
    """Return the parameters of a model that was saved and loaded."""
    # biases stay so small that a step of 1e-9 moves them
    how = {"noise_multiplier": 0, "learning_rate": 1e-3}
    clf = DPSGDClassifier(**TINY | how).fit(*records)
    save(clf, tmp_path / "public")
    return load(tmp_path / "public").parameters_


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", few(1, [7, 3]))
def test_a_fit_starts_from_them_with_a_head_of_its_own_size(public, records, n_classes):
    given = {name: leaf.copy() for name, leaf in public.items()}
    clf = DPSGDClassifier(
        **TINY | {"classes": range(n_classes), "weights": public},
        frozen="all_but_head", learning_rate=1e-9,
    )  # fmt: skip
    fitted = clone(clf).fit(*records)
    for name, leaf in fitted.parameters_.items():
        assert np.array_equal(public[name], given[name])
        if not name.startswith("layers/3/"):
            assert np.array_equal(leaf, given[name])
        elif n_classes == 3:
            np.testing.assert_allclose(leaf, given[name], atol=1e-6)
        else:
            assert leaf.shape[-1] == 7
    if n_classes == 3:
        assert not np.array_equal(
            fitted.parameters_["layers/3/bias"], given["layers/3/bias"]
        )


@pytest.mark.slow
def test_their_fit_is_gone_on_with_by_the_same_parameters_alone(
    public, records, tmp_path
):
    params = TINY | {"weights": public, "checkpoint_dir": tmp_path / "steps"}
    clf = DPSGDClassifier(**params).fit(*records)
    restored = clone(clf).restore()
    assert np.array_equal(
        restored.parameters_["layers/3/bias"], clf.parameters_["layers/3/bias"]
    )
    other = public | {"layers/3/bias": public["layers/3/bias"] + 1}
    with pytest.raises(ValueError, match="checkpoint_dir must hold"):
        DPSGDClassifier(**params | {"weights": other}).restore()
    save(clf, tmp_path / "model")
    assert load(tmp_path / "model").weights is None


def test_parameters_of_another_network_are_refused(public, records, released):
    bad = dict(public)
    del bad["layers/3/bias"]
    nan = public | {"layers/3/bias": np.full(3, np.nan)}
    wide = {
        n: np.pad(leaf, (0, 1)) if leaf.ndim == 1 else leaf
        for n, leaf in public.items()
    }
    done = len(released)
    for weights in (bad, nan, wide, {}):
        with pytest.raises(ValueError, match="weights must"):
            DPSGDClassifier(**TINY | {"weights": weights}).fit(*records)
    assert len(released) == done


@pytest.mark.slow
def test_the_default_rate_is_that_of_the_network_and_its_steps(records):
    clf = DPSGDClassifier(**TINY).fit(*records)
    shapes = [leaf.shape for leaf in clf.parameters_.values()]
    rate = default_rate("adam", shapes, TINY["n_iter"])
    same = DPSGDClassifier(**TINY, learning_rate=rate).fit(*records)
    other = DPSGDClassifier(**TINY, learning_rate=1.01 * rate).fit(*records)
    for name, leaf in clf.parameters_.items():
        assert np.array_equal(leaf, same.parameters_[name])
        assert not np.array_equal(leaf, other.parameters_[name])


@pytest.mark.slow
def test_public_weights_move_at_a_rate_that_keeps_them(public, records):
    clf = DPSGDClassifier(**TINY, weights=public).fit(*records)
    same = DPSGDClassifier(**TINY, weights=public, learning_rate=1e-3).fit(*records)
    for name, leaf in clf.parameters_.items():
        assert np.array_equal(leaf, same.parameters_[name])
