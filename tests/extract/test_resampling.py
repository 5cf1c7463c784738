import numpy as np
import pytest

from privfeat_extract.resampling import resize_grey


@pytest.mark.parametrize("interpolation", ["box", "bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(16, 16), (5, 7), (20, 9), (12, 15)])
def test_resize_grey_agrees_with_pillow(interpolation, size):
    image_module = pytest.importorskip("PIL.Image")
    image = np.random.default_rng(0).random((12, 15)).astype(np.float32)
    method = image_module.Resampling[interpolation.upper()]
    expected = image_module.fromarray(image).resize(size[::-1], method)
    found = resize_grey(image.astype(np.float64), *size, interpolation)
    np.testing.assert_allclose(found, np.asarray(expected), atol=1e-6)


@pytest.mark.parametrize("interpolation", ["box", "bilinear", "bicubic"])
def test_resize_grey_keeps_a_constant_image(interpolation):
    found = resize_grey(np.full((8, 8), 0.3), 19, 3, interpolation)
    np.testing.assert_allclose(found, 0.3)
