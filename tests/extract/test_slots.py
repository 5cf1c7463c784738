"""Rows that a network works on at a time count alike, whatever their place."""

import numpy as np
import pytest

from privfeat.data import open_features
from tests.later import Later

torch = Later("torch")
pytestmark = pytest.mark.usefixtures("with_timm")


def features(order):
    """Two features for each row; one is a zero, whose sign counts as well."""
    return np.column_stack([order + 1.0, 0.0 * order]).astype(np.float32)


def rounding(marked):
    """Return a network that rounds otherwise in slots that ``marked`` names."""

    def make(order):
        found = features(order)
        slots = marked(len(order))
        found[slots] = np.nextafter(found[slots], np.float32(1e9))
        return found

    return make


@pytest.mark.parametrize("asked", [1, 2, 4, 32])
def test_a_network_that_treats_slots_alike_works_on_all(asked, capsys):
    from privfeat_extract.slots import find_batch_size

    assert find_batch_size(features, asked) == asked
    assert not capsys.readouterr().err


@pytest.mark.parametrize(("asked", "found"), [(33, 32), (10, 8), (3, 2)])
def test_none_is_left_over_of_a_power_of_two(asked, found, capsys):
    from privfeat_extract.slots import find_batch_size

    assert find_batch_size(features, asked) == found
    assert f"of {asked} rows at a time" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("marked", "found"),
    [
        (lambda size: slice(16, None), 16),  # a part that begins at a place
        (lambda size: slice(size // 2, None), 1),  # the share of the second thread
        (lambda size: slice(size // 3, 2 * size // 3), 1),
        (lambda size: slice(30, None), 16),  # what is left over
        (lambda size: slice(0, size > 4), 4),
    ],
)
def test_fewer_rows_are_taken_where_slots_differ(marked, found, capsys):
    from privfeat_extract.slots import find_batch_size

    assert find_batch_size(rounding(marked), 32) == found
    assert f"it works on {found}" in capsys.readouterr().err


def routed(order):
    """Round rows by how many go to the same one of two experts."""
    found, expert = features(order), np.random.default_rng(0).integers(2, size=128)
    for each in range(2):
        chosen = expert[order] == each
        if np.count_nonzero(chosen) % 4:  # left over of fours
            found[chosen] = np.nextafter(found[chosen], np.float32(1e9))
    return found


def beside_short_ones(order):
    """Round rows by how much all of them are filled up: the number of their tokens."""
    found = features(order)
    shorter = np.count_nonzero(order >= len(order))
    return found if shorter == 0 else np.nextafter(found, np.float32(1e9))


def beside_copies(order):
    found = features(order)
    alone = len(order) > 4 and len(set(order.tolist())) == 1
    return np.nextafter(found, np.float32(1e9)) if alone else found


@pytest.mark.parametrize(
    ("make", "found"), [(routed, 2), (beside_short_ones, 1), (beside_copies, 4)]
)
def test_fewer_rows_are_taken_where_the_others_round_them(make, found, capsys):
    from privfeat_extract.slots import find_batch_size

    assert find_batch_size(make, 32) == found
    capsys.readouterr()


@pytest.mark.parametrize("asked", [1, 8])
def test_a_network_that_draws_random_numbers_is_refused(asked):
    """As Reformer hashes: one text more, and all later ones get other numbers."""
    from privfeat_extract.errors import ExtractError
    from privfeat_extract.slots import find_batch_size

    draw = np.random.default_rng(0)

    def make(order):
        return features(order) + draw.random((len(order), 2), np.float32)

    with pytest.raises(ExtractError, match="draws random numbers"):
        find_batch_size(make, asked)


@pytest.mark.parametrize("place", range(4))
def test_one_slot_that_differs_by_the_sign_of_a_zero_is_found(place, capsys):
    from privfeat_extract.slots import find_batch_size

    def make(order):
        found = features(order)
        if len(order) == 4:
            found[place, 1] = -0.0
        return found

    assert find_batch_size(make, 4) == 2
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
    assert "it works on 1." in err
    assert len(open_features(tmp_path / "out.h5")["train"].X) == 10
