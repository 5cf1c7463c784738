"""Images as arrays: given, or read from a folder."""

from pathlib import Path

import numpy as np
import pytest

from privfeat import DPSGDRegressor
from privfeat.networks.images.augment import to_inputs
from privfeat.networks.images.records import as_records, pixel_scale, read_folder


def test_bytes_become_numbers_from_minus_one_to_one():
    records = as_records([np.zeros((4, 4), np.uint8), np.full((4, 4), 255, np.uint8)])
    assert records.shape == (2, 4, 4, 1)
    inputs = to_inputs(records)
    assert inputs.dtype == np.float32
    assert (inputs.min(), inputs.max()) == (-1.0, 1.0)


@pytest.mark.parametrize(
    ("X", "error"),
    [
        ([np.zeros((4, 4)), np.zeros((4, 5))], ValueError),
        (np.zeros((0, 4)), ValueError),
        (np.zeros(4), ValueError),
        (np.zeros((2, 4, 4, 3), np.int64), TypeError),
        (np.array([["a"]]), TypeError),
        (np.array([[1j]]), TypeError),
        (np.array([[np.nan]]), ValueError),
    ],
)
def test_bad_records_are_refused(X, error):
    with pytest.raises(error):
        as_records(X)


def test_bytes_beside_other_numbers_are_refused():
    """One image of floats would leave the bytes of all others as they are."""
    images = [np.zeros((4, 4), np.uint8), np.zeros((4, 4), np.float32)]
    with pytest.raises(TypeError, match="must hold records of one type"):
        as_records(images)
    with pytest.raises(TypeError, match="images as bytes"):
        as_records([np.zeros((4, 4), np.int64)])


@pytest.mark.parametrize(
    "take",
    [as_records, lambda rows: DPSGDRegressor(model="mlp")._problem(rows).targets],
)
def test_a_fraction_in_one_record_rounds_no_other(take):
    """Large whole numbers are rounded once from int64, and twice from float64."""
    whole = 2**62 + 2**38 + np.arange(-2, 3)[:, None]
    fraction = np.append(whole, [[0.5]], axis=0)
    np.testing.assert_array_equal(take(fraction)[:-1], take(whole))
    np.testing.assert_array_equal(take(fraction.astype("g"))[:-1], take(whole))


@pytest.mark.filterwarnings("ignore:files in folders of")
def test_images_are_read_by_class(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    for name, grey in (("b", 200), ("a", 10)):
        (tmp_path / name).mkdir()
        Image.new("RGB", (12, 8), (grey,) * 3).save(tmp_path / name / "1.png")
        (tmp_path / name / "notes.txt").write_text("no image")
    images, labels, names, files = read_folder(tmp_path, size=4, mode="L")
    assert names == ["a", "b"]
    assert files == ["a/1.png", "b/1.png"]
    assert labels.tolist() == [0, 1]
    assert images.shape == (2, 4, 4, 1)
    assert images[:, 0, 0, 0].tolist() == [10, 200]
    # a few small images need not stay on disk
    chosen = read_folder(tmp_path, size=4, mode="L", lazy=None).images
    np.testing.assert_array_equal(chosen, images)
    assert type(chosen) is np.ndarray


@pytest.mark.parametrize("path", ["images/train", Path("images")])
def test_records_refuse_a_path_and_name_who_reads_it(path):
    with pytest.raises(TypeError, match="read_folder"):
        as_records(path)


def test_images_are_read_upright_and_sixteen_bits_in_full(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    (tmp_path / "b").mkdir()
    (tmp_path / "a").mkdir()
    ramp = np.tile(np.arange(4, dtype=np.uint16) * 21845, (4, 1))
    exif = Image.Exif()
    exif[0x0112] = 6  # turn clockwise
    Image.fromarray(ramp).save(tmp_path / "a" / "1.png")
    Image.fromarray(ramp).save(tmp_path / "a" / "2.png", exif=exif)
    images = read_folder(tmp_path, size=4, mode="L").images[..., 0]
    np.testing.assert_array_equal(images[0, 0], [0, 85, 170, 255])
    np.testing.assert_array_equal(images[1], images[0].T)


def test_folders_of_splits_are_no_classes(tmp_path):
    for name in ("train/cat", "test/cat"):
        (tmp_path / name).mkdir(parents=True)
    with pytest.raises(ValueError, match=r"the name of a split\. Pass the folder of"):
        read_folder(tmp_path, size=4)


def test_a_bad_image_is_named_and_can_be_skipped(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    for name in "ab":
        (tmp_path / name).mkdir()
        Image.new("RGB", (8, 8)).save(tmp_path / name / "1.png")
    (tmp_path / "a" / "2.png").write_text("no image")
    with pytest.raises(ValueError, match=r"a/2\.png must be an image, but cannot be"):
        read_folder(tmp_path, size=4)
    with pytest.warns(UserWarning, match=r"skipped .*a/2\.png"):
        found = read_folder(tmp_path, size=4, skip_bad=True)
    assert found.files == ["a/1.png", "b/1.png"]


def test_records_refuse_images_whose_numbers_are_no_colours():
    Image = pytest.importorskip("PIL.Image")
    with pytest.raises(ValueError, match="mode L or RGB, got another"):
        as_records([Image.new("P", (4, 4)), Image.new("P", (4, 4))])
    assert as_records([Image.new("L", (4, 4))]).shape == (1, 4, 4, 1)


def test_bytes_are_scaled_as_the_weights_of_a_name_want_them():
    images = np.full((1, 2, 2, 3), 255, np.uint8)
    for model, weights, white in (
        ("mobilenetv2_100", "w", [(1 - 0.485) / 0.229, (1 - 0.456) / 0.224, 2.64]),
        ("mobilenetv2_100_same", "w", [1.0, 1.0, 1.0]),
        ("mobilenetv2_100", None, [1.0, 1.0, 1.0]),
        ("wrn_16_4", "w", [1.0, 1.0, 1.0]),
    ):
        found = to_inputs(images, pixel_scale(model, weights))
        np.testing.assert_allclose(found[0, 0, 0], white, rtol=1e-4)
        assert found.dtype == np.float32
