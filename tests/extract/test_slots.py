"""Rows that a network works on at a time count alike, whatever their place."""

import numpy as np
import pytest

from privfeat.data import open_features
from tests.later import Later

torch = Later("torch")
pytestmark = pytest.mark.usefixtures("with_timm")


def features(second):
    """Rows of two features, by turns those of one and of another image."""
    return np.where(second[:, None], [1.0, 2.0], [3.0, -0.0]).astype(np.float32)


def in_parts(size):
    """Return a network that rounds otherwise behind its first ``size`` slots."""

    def make(second):
        found = features(second)
        found[size:] = np.nextafter(found[size:], np.float32(9.0))
        return found

    return make


@pytest.mark.parametrize("asked", [1, 2, 33])
def test_a_network_that_treats_slots_alike_works_on_all(asked, capsys):
    from privfeat_extract.slots import find_batch_size

    assert find_batch_size(features, asked) == asked
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "alike", "found"), [(32, 16, 16), (32, 31, 16), (33, 4, 4), (32, 1, 1)]
)
def test_fewer_rows_are_taken_where_slots_differ(asked, alike, found, capsys):
    from privfeat_extract.slots import find_batch_size

    assert find_batch_size(in_parts(alike), asked) == found
    assert f"it works on {found} at a time" in capsys.readouterr().err


@pytest.mark.parametrize("place", range(4))
def test_one_slot_that_differs_is_found_for_either_image(place, capsys):
    """Where the sign of a zero differs, too."""
    from privfeat_extract.slots import find_batch_size

    def make(second, image=0):
        found = features(second)
        if len(second) == 4 and second[place] == image:
            found[place, 1] += 0.0  # -0.0 becomes 0.0; 2.0 stays
            found[place] += 1e-7 * image
        return found

    assert find_batch_size(make, 4) == 2
    assert find_batch_size(lambda second: make(second, image=1), 4) == 2
    capsys.readouterr()


@pytest.mark.slow
def test_attention_with_one_query_is_given_an_image_at_a_time(
    images, network, tmp_path
):
    """Of torch on a CPU: threads share a batch, and round their parts in two ways."""
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        options = ("--model", "test_vit", "--model-kwargs", "global_pool=map")
        status, _, err = network(
            images, *options, "--crop", 160, "--resize", 160, "--batch-size", 8
        )
    finally:
        torch.set_num_threads(threads)
    assert status == 0, err
    assert "it works on 1 at a time" in err
    assert len(open_features(tmp_path / "out.h5")["train"].X) == 10
