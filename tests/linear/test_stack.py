"""Gram matrices and products released as one query under replace-one."""

import math

import numpy as np
import pytest

from privfeat import DPLeastSquares, DPNewton
from privfeat.core.bounds import replacement
from privfeat.core.bounds.sensitivity import gram

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
FITS = {
    "class_sums": (DPLeastSquares, {}),
    "class_grams": (DPLeastSquares, {"class_gram": True}),
    "gradient": (DPNewton, {}),
}


@pytest.fixture(params=FITS)
def made(request):
    cls, options = FITS[request.param]
    options = {"classes": range(3), "adjacency": "replace_one", **options}
    return lambda **more: cls(**options, **more)


def noise_of_parts(made, data, spy, **options):
    """The stddev of the noise in each block, in the units of its sum."""
    spy.start()
    model = made(**options)
    seen = {}
    genuine = model._release

    def release(mechanism, shape, name, exact, **rest):
        seen[name] = genuine(mechanism, shape, name, exact, **rest)
        recorded = spy.calls[-1]
        scale = shape.stack.scales[name]
        np.testing.assert_allclose(recorded.exact, exact.value * scale, rtol=1e-15)
        np.testing.assert_allclose(
            seen[name].value, recorded.release.value / scale, rtol=1e-15
        )
        return seen[name]

    model._release = release
    model.fit(*data)
    return model, {name: part.noise_stddev for name, part in seen.items()}


def test_statement_says_what_is_stacked_at_which_scale(made, three_classes):
    clf = made().fit(*three_classes)
    query = clf.privacy_.releases[-1]
    (fact,) = [fact for fact in clf.privacy_.public if "stacks" in fact]
    assert fact.startswith(f"that {query.name} stacks ")
    assert "1 " + query.name.removesuffix("_and_gram") in fact
    assert len(clf.privacy_.releases) == 2
    alone = made().set_params(adjacency="add_remove").fit(*three_classes)
    assert not any("stacks" in fact for fact in alone.privacy_.public)
    assert {"gram"} < {record.name for record in alone.privacy_.releases}


@pytest.mark.parametrize("center", [True, False])
def test_budget_split_sets_the_noise_of_each_part(made, center, three_classes, spy):
    """As without a stack, but that all noise is smaller by one factor."""
    model, defaults = noise_of_parts(made, three_classes, spy)
    names = list(defaults)
    split = dict(zip(names, [0.3, 0.5, 0.2], strict=False))
    if len(names) == 2:
        split[names[1]] = 0.7
    if center:
        split = {name: 0.9 * share for name, share in split.items()}
        split["feature_mean"] = 0.1
    model, found = noise_of_parts(
        made, three_classes, spy, rho=1.0, budget_split=split, center=center
    )
    shape = model._problem(three_classes[1], 4).shape
    bounds = {query.name: query.l2_sensitivity for query in model._queries(shape)}
    separate = {n: bounds[n] / math.sqrt(2.0 * split[n]) for n in names}
    ratios = [found[name] / separate[name] for name in names]
    assert ratios == pytest.approx([ratios[0]] * len(names))
    assert 0.7 < ratios[0] < 1.0
    spent = {
        record.name: record.count / (2 * record.noise_multiplier**2)
        for record in model.privacy_.releases
    }
    assert sum(spent.values()) == pytest.approx(1.0, rel=1e-9)
    assert spent.get("feature_mean", 0.1) == pytest.approx(0.1)


@pytest.mark.parametrize("cls", [DPLeastSquares, DPNewton])
def test_gram_is_free_by_default(cls, three_classes):
    """The stack moves as far as its products alone."""
    model = cls(classes=range(3), adjacency="replace_one").fit(*three_classes)
    bound = model.privacy_.releases[-1].l2_sensitivity
    factor = 1.0 if cls is DPLeastSquares else math.sqrt(2.0 / 3.0)
    assert bound == pytest.approx(2.0 * factor, rel=3e-6)


def test_stack_declares_the_bound_for_its_scales(three_classes, spy):
    model = DPLeastSquares(
        classes=range(3),
        adjacency="replace_one",
        clip_norm=0.3,
        class_gram=True,
        center=False,
    )
    model.fit(*three_classes)
    scale = 2.0 * 0.3 / (gram(0.3, "replace_one") / (1.0 + 2.0**-20))  # equal shares
    expected = replacement.gram_and_products(0.3, 1.0, scale, scale, "replace_one")
    (record,) = model.privacy_.releases
    assert record.l2_sensitivity == pytest.approx(expected, rel=1e-12)
    assert len(spy.calls) == 2 + 3


def test_newton_stacks_only_what_one_step_bounds(three_classes):
    """Not more steps, not the sigmoid, and no clip that makes gradients shorter."""
    for options in ({"n_iter": 2}, {"loss": "sigmoid"}, {"gradient_clip_norm": 0.5}):
        model = DPNewton(classes=range(3), adjacency="replace_one", **options)
        names = {record.name for record in model.fit(*three_classes).privacy_.releases}
        assert "gradient" in names


@pytest.mark.validation
@pytest.mark.parametrize(
    ("split", "error"),
    [
        ([0.5, 0.5], TypeError),
        ({"gram": 1.0}, ValueError),
        ({"feature_mean": 0.1, "class_sums_and_gram": 0.9}, ValueError),
        ({"feature_mean": 0.1, "gram": 0.1, "class_sums": math.nan}, ValueError),
        ({"feature_mean": 0.1, "gram": 0.1, "class_sums": 0.7}, ValueError),
    ],
)
def test_fit_refuses_a_wrong_split_of_a_stack(split, error, three_classes):
    model = DPLeastSquares(
        classes=range(3), adjacency="replace_one", budget_split=split
    )
    with pytest.raises(error, match="budget_split"):
        model.fit(*three_classes)
