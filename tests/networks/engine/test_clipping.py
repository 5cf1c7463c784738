"""Every factor, style and engine keeps one record's part within the clip norm."""

import itertools
import math

import jax.numpy as jnp
import numpy as np
import pytest

from privfeat.networks.engine.clipping import (
    CLIP_FACTORS,
    CLIP_STYLES,
    check_phases,
    clip_factors,
    equal_share,
    part_of,
    shares_of,
)
from privfeat.networks.engine.network import Network


@pytest.mark.parametrize("factor", CLIP_FACTORS)
@pytest.mark.parametrize("radius", [1e-6, 0.1, 1.0, 1e6])
def test_no_factor_lets_a_norm_exceed_the_radius(factor, radius):
    norms = np.concatenate([[0.0], np.logspace(-25, 18, 2000), [radius]])
    factors = clip_factors(jnp.asarray(norms, jnp.float32), radius, factor)
    # a norm that is a thousandth larger than was computed must fit as well
    bounded = norms * 1.001 * np.asarray(factors, np.float64)
    assert np.all(np.isfinite(bounded))
    assert bounded.max() <= radius


@pytest.mark.parametrize("factor", CLIP_FACTORS)
def test_norms_that_are_not_finite_count_for_nothing(factor):
    norms = jnp.array([jnp.nan, jnp.inf, -jnp.inf])
    assert np.all(clip_factors(norms, 1.0, factor) == 0.0)


def test_factors_are_those_of_the_papers():
    norms = jnp.array([0.5, 4.0])
    expected = {
        "abadi": [1.0, 0.5],
        "automatic": [2.0 / 0.51, 2.0 / 4.01],
        "normalize": [4.0, 0.5],
        "global": [1.0, 0.0],
    }
    for factor, values in expected.items():
        np.testing.assert_allclose(clip_factors(norms, 2.0, factor), values, rtol=5e-3)


@pytest.mark.parametrize(
    ("factor", "style", "engine"),
    list(itertools.product(CLIP_FACTORS, CLIP_STYLES, ["fast", "reference"])),
)
def test_one_record_moves_the_sum_by_at_most_the_clip_norm(
    factor, style, engine, small_mlp, make_batch, make_sum, norm_of
):
    """Brute force: records of every size, alone in the batch."""
    options = {"factor": factor, "style": style, "clip_norm": 0.3}
    compute = make_sum(small_mlp, make_batch((5,), n=1), engine, **options)
    batches = [make_batch((5,), n=1, scale=scale) for scale in (1e-3, 1.0, 10.0)]
    largest = max(norm_of(compute(batch)) for batch in batches)
    assert largest <= 0.3
    if factor == "normalize" or (factor == "abadi" and style == "flat"):
        assert largest > 0.29  # the bound is reached


@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_one_record_moves_each_part_by_at_most_its_own_bound(
    engine, small_mlp, make_batch, make_sum, norm_of
):
    """Brute force, for bounds chosen by name: the whole stays within their norm."""
    names, bounds = tuple(Network(small_mlp).initial), {"": 3e-3, "layers/1": 0.4}
    ((_, whole),), shares = shares_of(bounds, names, "layerwise")
    assert whole == pytest.approx(math.hypot(3e-3, 0.4))
    assert math.hypot(*(share for _, share in shares)) <= 1.0
    options = {"factor": "normalize", "style": "layerwise", "shares": shares}
    batch = make_batch((5,), n=1)
    compute = make_sum(small_mlp, batch, engine, clip_norm=whole, **options)
    for scale in (1e-2, 1.0, 10.0):
        found = compute(make_batch((5,), n=1, scale=scale))
        assert 0.98 * whole < norm_of(found) <= whole
        for part, share in shares:
            own = {n: leaf for n, leaf in found.items() if n.startswith(f"{part}/")}
            assert norm_of(own) <= share * whole


@pytest.mark.parametrize(
    ("bounds", "style"),
    [
        ({"head": 1.0}, "layerwise"), ({"": 1.0, "body": 1.0}, "layerwise"),
        ({"": 1.0}, "flat"), ({}, "layerwise"), ({"": np.nan}, "layerwise"),
        ({"": 0.0}, "blockwise"), ({0: 1.0}, "layerwise"),
    ],
)  # fmt: skip
def test_bounds_by_name_must_be_of_all_parts_and_no_other(bounds, style):
    with pytest.raises((TypeError, ValueError), match="clip_"):
        shares_of(bounds, ("hidden/kernel", "head/kernel"), style)


def test_bounds_by_name_are_of_whole_names():
    names = ("layers/1/kernel", "layers/10/kernel")
    bounds = {"": 3.0, "layers/1": 4.0}
    ((_, whole),), shares = shares_of(bounds, names, "layerwise")
    radii = {part: share * whole for part, share in shares}
    assert radii == pytest.approx({"layers/1": 4.0, "layers/10": 3.0})


def test_without_the_clip_the_bound_breaks(
    small_mlp, make_batch, sum_of, norm_of, plant
):
    """The test above notices a factor that does nothing."""

    plant("factors of the clip", lambda norms, *_: jnp.ones_like(norms))
    batch = make_batch((5,), n=1)
    assert norm_of(sum_of(small_mlp, batch, "fast", clip_norm=0.3)) > 0.3


def test_parts_are_layers_or_blocks():
    assert part_of("blocks/1/conv", "flat") == ""
    assert part_of("blocks/1/conv", "layerwise") == "blocks/1/conv"
    assert part_of("blocks/1/conv", "blockwise") == "blocks/1"
    assert part_of("stem", "blockwise") == "stem"


def test_radii_of_parts_make_the_clip_norm():
    for n_parts in (1, 2, 7):
        radii = np.full(n_parts, 2.5 * equal_share(n_parts))
        assert np.linalg.norm(radii) == pytest.approx(2.5)


@pytest.mark.parametrize(
    "clip_norm",
    [0.0, -1.0, np.nan, np.inf, True, "1", (), ((0.5, 1.0),), ((0.0, 1.0), (0.0, 2.0))],
)
def test_bad_clip_norms_are_refused(clip_norm):
    with pytest.raises((TypeError, ValueError)):
        check_phases(clip_norm)


def test_a_schedule_is_kept():
    assert check_phases(((0.0, 0.1), (0.8, 10))) == ((0.0, 0.1), (0.8, 10.0))
