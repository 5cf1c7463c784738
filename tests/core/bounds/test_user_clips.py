"""How far sums of users are clipped: the bounds of one record, worked out by hand."""

import math

import pytest

from privfeat.core.bounds.user_clips import SumClip, UserClip

STEP = 2.0**-20  # of the grids of rows here, and of softmax residuals
LIMITS = {"radius": math.inf, "clip_norm": math.inf}


def test_class_sums_are_clipped_to_a_row_of_each_label():
    clip = UserClip(row_norm=3.0, most_records=5, max_labels=4).of_class_sums(0.5)
    assert clip == SumClip(block=8, limit=2.0 * 3.0 / 0.5, slack=0.0, scale=2.0**20)


@pytest.mark.parametrize(
    ("limits", "norm"),
    [
        ({"clip_norm": 0.25}, 0.25),
        ({"radius": 0.5}, 0.5 * 3.0),
        ({"radius": 0.5, "clip_norm": 2.0}, 0.5 * 3.0),
        ({}, math.sqrt(2.0) * 3.0),
    ],
)
def test_gradients_are_clipped_to_the_least_bound(limits, norm):
    user = UserClip(row_norm=3.0, most_records=5)
    clip = user.of_gradients(STEP, "softmax", 16, **(LIMITS | limits))
    assert clip.limit == pytest.approx(norm / STEP / STEP, rel=1e-12)
    assert clip.slack == 5 * math.sqrt(16) * 3.0 / STEP
    assert (clip.block, clip.scale) == (8, 1.0)


def test_grams_are_clipped_to_the_square_of_a_row():
    clip = UserClip(row_norm=3.0, most_records=6).of_grams(STEP, 9)
    assert clip == SumClip(8, (3.0 / STEP) ** 2, 6 * 5.0 * 3.0 * 3.0 / STEP)


@pytest.mark.parametrize(
    ("records", "block"), [(1, 1), (2, 2), (3, 4), (4, 4), (5, 8), (512, 512)]
)
def test_a_block_holds_all_records_of_a_user(records, block):
    assert UserClip(1.0, records).of_class_sums(STEP).block == block


def test_residuals_that_leave_the_grid_are_refused():
    user = UserClip(1.0, 2)
    user.of_gradients(STEP, "sigmoid", 4096, **LIMITS)
    with pytest.raises(ValueError, match="4096 classes"):
        user.of_gradients(STEP, "sigmoid", 4097, **LIMITS)


def test_rounding_takes_at_most_half_of_a_bound():
    SumClip(8, 1.0, 0.5)
    SumClip(8, 1.0, 0.0)
    for slack in (0.5 + 2.0**-50, -(2.0**-50), math.nan):
        with pytest.raises(ValueError, match="max_group_size must be smaller"):
            SumClip(8, 1.0, slack)


@pytest.mark.parametrize("bad", [0, -1, 1.5, True])
def test_labels_of_a_record_are_counted(bad):
    with pytest.raises((TypeError, ValueError), match="max_labels"):
        UserClip(1.0, 2, bad)
