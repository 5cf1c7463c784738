import math

import numpy as np
import pytest
from sklearn.decomposition import PCA

from privfeat.audit import recording
from privfeat.preprocessing import DPPCA

pytestmark = pytest.mark.filterwarnings("ignore:epsilon should be at most 20")


def draw(n, d=5):
    rng = np.random.default_rng(0)
    turn, _ = np.linalg.qr(rng.normal(size=(d, d)))
    X = rng.normal(size=(n, d)) * np.arange(d, 0, -1) / d @ turn
    return X - X.mean(axis=0)


def test_pca_without_noise_is_that_of_sklearn():
    X = draw(3000)
    ours = DPPCA(n_components=3, epsilon=math.inf, clip_norm=100.0).fit(X)
    plain = PCA(3).fit(X)
    same = np.abs(np.sum(ours.components_ * plain.components_, axis=1))
    assert same == pytest.approx(1.0, abs=1e-4)
    ratio = plain.explained_variance_ratio_
    assert ours.explained_variance_ratio_ == pytest.approx(ratio, abs=1e-4)


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_pca_of_many_records_is_close(adjacency):
    X = draw(20_000)
    ours = DPPCA(n_components=2, adjacency=adjacency, clip_norm=2.0).fit(X)
    plain = PCA(2).fit(X)
    angles = np.linalg.svd(ours.components_ @ plain.components_.T)[1]
    assert np.all(angles > 0.98)


def test_rows_are_centred_clipped_and_counted_once():
    X = np.array([[3.0, 4.0], [0.3, 0.4], [1.0, 1.0]])
    with recording() as recorder:
        DPPCA(clip_norm=1.0, center=[1.0, 1.0], epsilon=5.0).fit(X)
    (call,) = recorder.calls
    shifted = X - 1.0
    norms = np.linalg.norm(shifted, axis=1)
    clipped = shifted / np.maximum(norms, 1.0)[:, None]
    assert call.exact == pytest.approx(clipped.T @ clipped, abs=1e-5)


def test_more_records_than_a_chunk_are_summed():
    X = np.tile([[0.6, 0.8]], (1500, 1))
    with recording() as recorder:
        DPPCA(epsilon=5.0).fit(X)
    expected = 1500 * np.outer([0.6, 0.8], [0.6, 0.8])
    assert recorder.calls[0].exact == pytest.approx(expected, rel=1e-4)


def test_pca_gives_back_what_it_keeps():
    X = draw(500)
    pca = DPPCA(epsilon=8.0, center=np.full(5, 0.1)).fit(X)
    assert pca.inverse_transform(pca.transform(X)) == pytest.approx(X)
    assert pca.get_feature_names_out().tolist() == [f"dppca{i}" for i in range(5)]
    assert np.eye(5) == pytest.approx(pca.components_ @ pca.components_.T, abs=1e-9)


def test_outputs_are_known_before_records():
    assert DPPCA(n_components=3).n_outputs(7) == 3
    assert DPPCA().n_outputs(7) == 7


@pytest.mark.parametrize(
    "bad",
    [
        {"n_components": 6},
        {"n_components": 0},
        {"clip_norm": 0.0},
        {"clip_norm": math.nan},
        {"center": [1.0]},
        {"center": [math.nan] * 5},
    ],
)
def test_bad_parameters_are_refused(bad):
    with pytest.raises(ValueError, match="must be"):
        DPPCA(**bad).fit(draw(10))


def test_too_many_columns_are_refused():
    with pytest.raises(ValueError, match="fewer than"):
        DPPCA().planned(10**6)


def test_transform_refuses_rows_of_another_width():
    pca = DPPCA(n_components=2, epsilon=1.0).fit(draw(20))
    with pytest.raises(ValueError, match="must have the 2 columns"):
        pca.inverse_transform(np.zeros((1, 3)))
