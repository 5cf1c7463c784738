"""Images of an HDF5 file are those that were written, whatever compresses them."""

import h5py
import numpy as np
import pytest

from privfeat.data import FeatureFileError, open_images

X = np.arange(6 * 16, dtype=np.uint8).reshape(6, 4, 4, 1)
JPEG = 32019  # a registered filter that rounds the images of a part by each other


def write(path, make):
    with h5py.File(path, "w") as file:
        group = file.create_group("train")
        group["labels"] = np.arange(6) % 2
        make(group)


def plugged(group):
    """Images with a filter that is not installed, which HDF5 then leaves out."""
    how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    how.set_chunk(X.shape)
    how.set_filter(JPEG, h5py.h5z.FLAG_OPTIONAL)
    kind = h5py.h5t.py_create(X.dtype), h5py.h5s.create_simple(X.shape)
    h5py.h5d.create(group.id, b"images", *kind, how)
    group["images"][:] = X


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"compression": "gzip", "shuffle": True, "fletcher32": True},
        {"compression": "lzf"},
    ],
)
def test_images_are_read_through_filters_that_lose_nothing(tmp_path, options):
    path = tmp_path / "images.h5"
    write(path, lambda group: group.create_dataset("images", data=X, **options))
    np.testing.assert_array_equal(open_images(path).images[:], X)


def test_images_are_not_read_through_a_filter_that_may_round(tmp_path):
    path = tmp_path / "images.h5"
    write(path, plugged)
    with pytest.raises(FeatureFileError, match="a filter that may round them"):
        open_images(path)
