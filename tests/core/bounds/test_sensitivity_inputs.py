"""What bounds take, and what they refuse."""

import math

import numpy as np
import pytest

from privfeat.core.bounds import sensitivity
from privfeat.exceptions import UnsupportedEventError

ADJACENCIES = ["add_remove", "replace_one"]


@pytest.mark.validation
@pytest.mark.parametrize("radius", [0.0, -1.0, math.nan, math.inf])
def test_loss_gradient_refuses_a_clip_outside_its_range(radius):
    with pytest.raises(ValueError, match="clip_norm must be"):
        sensitivity.loss_gradient(1.0, "softmax", 3, "add_remove", radius)


@pytest.mark.validation
@pytest.mark.parametrize("loss", ["softmax", "sigmoid"])
def test_bounds_refuse_a_loss_without_outputs(loss):
    for bound in (sensitivity.residual_norm, sensitivity.curvature_norm):
        with pytest.raises(ValueError, match="n_outputs must be"):
            bound(loss, 0)


@pytest.mark.validation
@pytest.mark.parametrize("loss", ["softmax", "sigmoid"])
def test_bounds_refuse_more_outputs_than_their_margin_covers(loss):
    """`clip_residuals` proves its bound for fewer than 200,000."""
    for bound in (sensitivity.residual_norm, sensitivity.curvature_norm):
        assert bound(loss, 199_999) > 0.0
        with pytest.raises(ValueError, match="n_outputs must be in"):
            bound(loss, 200_000)


@pytest.mark.validation
@pytest.mark.parametrize("bad", [0, -1, 1.5, True, math.nan, None])
def test_per_user_refuses_a_wrong_number_of_records(bad):
    with pytest.raises((TypeError, ValueError), match="max_group_size must be"):
        sensitivity.per_user(1.0, bad)


@pytest.mark.parametrize("number", [int, np.int64, np.float64, np.float32, np.float16])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(
    "bound",
    [
        lambda c, adjacency: sensitivity.gram(c, adjacency),
        lambda c, adjacency: sensitivity.class_grams(c, adjacency),
        lambda c, adjacency: sensitivity.class_sums(c, adjacency),
        lambda c, adjacency: sensitivity.clipped_gradient(c, adjacency),
        lambda c, adjacency: sensitivity.loss_gradient(c, "softmax", 3, adjacency),
        lambda c, adjacency: sensitivity.curvature_grams(c, "softmax", 3, adjacency),
    ],
    ids=["gram", "class_grams", "class_sums", "clipped", "loss_gradient", "curvature"],
)
@pytest.mark.validation
def test_bounds_do_not_depend_on_the_type_of_number(bound, adjacency, number):
    """A bound computed in float16 is 5e-4 too small, and loses its margin."""
    clip_norm = number(3) / number(10) if issubclass(number, np.floating) else number(3)
    assert bound(clip_norm, adjacency) == bound(float(clip_norm), adjacency)


@pytest.mark.validation
@pytest.mark.parametrize("adjacency", ["", "add", "ADD_REMOVE"])
def test_gram_refuses_an_unknown_adjacency(adjacency):
    with pytest.raises(ValueError, match="adjacency must be one of"):
        sensitivity.gram(1.0, adjacency)


@pytest.mark.validation
@pytest.mark.parametrize("clip_norm", [0.0, -1.0, math.nan, math.inf])
def test_clipped_gradient_refuses_a_radius_outside_its_range(clip_norm):
    with pytest.raises(ValueError, match="clip_norm must be"):
        sensitivity.clipped_gradient(clip_norm, "add_remove")


@pytest.mark.validation
@pytest.mark.parametrize("max_labels", [0, -1])
def test_class_sums_refuses_a_number_of_labels_below_one(max_labels):
    with pytest.raises(ValueError, match="max_labels must be in"):
        sensitivity.class_sums(1.0, "add_remove", max_labels)


@pytest.mark.validation
@pytest.mark.parametrize("max_labels", [True, 1.0, math.nan, "1"])
def test_class_sums_refuses_a_number_of_labels_that_is_no_integer(max_labels):
    with pytest.raises(TypeError, match="max_labels must be an integer"):
        sensitivity.class_sums(1.0, "add_remove", max_labels)


def test_curvature_grams_refuses_the_squared_loss():
    with pytest.raises(UnsupportedEventError, match="loss must be"):
        sensitivity.curvature_grams(1.0, "squared", 3, "add_remove")
