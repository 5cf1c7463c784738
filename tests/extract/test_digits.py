import numpy as np
import pytest

from privfeat_extract.digits import open_digits
from privfeat_extract.errors import ExtractError


def test_open_digits_splits_by_position():
    source = open_digits(None)
    assert list(source.splits) == ["train", "test"]
    assert source.splits["test"].names[:2] == ["digit-0004", "digit-0009"]
    names = [*source.splits["train"].names, *source.splits["test"].names]
    assert len(set(names)) == 1797
    assert source.digests == open_digits(None).digests


def test_open_digits_gives_grey_images():
    image, label = open_digits(["test"]).splits["test"].load(0)
    assert image.shape == (8, 8)
    assert image.dtype == np.uint8
    assert image.max() == 255
    assert label == 4


def test_open_digits_refuses_an_unknown_split():
    with pytest.raises(ExtractError, match="got 'val'"):
        open_digits(["val"])
