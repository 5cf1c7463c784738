import numpy as np
import pytest

from privfeat.data.pixels import BadImageError
from privfeat_extract.transforms import ResizeCrop

image_module = pytest.importorskip("PIL.Image")


@pytest.mark.parametrize("shape", [(32, 32), (37, 61), (61, 38), (200, 133)])
@pytest.mark.parametrize(("resize", "crop"), [(48, 32), (40, 40), (33, 20)])
@pytest.mark.parametrize("interpolation", ["bicubic", "bilinear", "nearest"])
def test_resize_crop_equals_torchvision(shape, resize, crop, interpolation):
    transforms = pytest.importorskip("torchvision.transforms")
    pixels = np.random.default_rng(0).integers(0, 256, (*shape, 3), dtype=np.uint8)
    image = image_module.fromarray(pixels)
    mode = transforms.InterpolationMode(interpolation)
    theirs = transforms.Compose(
        [transforms.Resize(resize, mode), transforms.CenterCrop(crop)]
    )
    expected = np.asarray(theirs(image))
    found = ResizeCrop(resize, crop, interpolation)(image)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "CMYK", "1"])
def test_resize_crop_takes_any_colour_mode(mode):
    image = image_module.new("L", (20, 20), 200).convert(mode)
    found = ResizeCrop(16, 16, "bicubic")(image)
    assert found.shape == (16, 16, 3)
    assert found.dtype == np.uint8


def test_resize_crop_takes_a_grey_array():
    found = ResizeCrop(16, 16, "bicubic")(np.full((8, 8), 9, np.uint8))
    np.testing.assert_array_equal(found, np.full((16, 16, 3), 9))


def test_resize_crop_refuses_an_image_that_no_memory_holds():
    """A strip of 1 x 60,000 pixels would be resized to 384 x 23 million."""
    strip = image_module.new("L", (1, 60_000))
    with pytest.raises(BadImageError, match="too many times"):
        ResizeCrop(384, 256, "bicubic")(strip)
