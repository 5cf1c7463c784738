"""Every constructor parameter with wrong types and values; nothing may be fitted."""

import inspect
import math

import numpy as np
import pytest

from privfeat import DPFC, DPAdamLinear, DPLeastSquares, DPNewton, PrivacyError
from tests.linear.conftest import ESTIMATORS

pytestmark = [
    pytest.mark.validation,
    pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning"),
]
NAN, INF = math.nan, math.inf
POSITIVE = [0, 0.0, -1.0, NAN, INF, True, "1", [1.0], 1j]
NOT_NEGATIVE = [-1.0, NAN, INF, True, "1", [1.0], 1j]
CHOICE = ["", "other", None, 1, True, NAN]
FLAG = [None, 0, 1, "True", NAN]
COUNT = [0, -1, 1.0, NAN, INF, True, "1", None]
# what every value must be refused for, by name of the parameter
WRONG = {
    "epsilon": [0, 0.0, -1.0, NAN, -INF, True, "1", [1.0]],
    "delta": [0, 0.0, 1.0, 1, -1.0, NAN, INF, True, "1e-5", None],
    "rho": POSITIVE,
    "noise_multiplier": POSITIVE,
    "adjacency": CHOICE,
    "accounting": CHOICE,
    "arithmetic": CHOICE,
    "budget_split": [0.5, "a", [0.5, 0.5], {}, {"other": 1.0}, True, NAN],
    "max_group_size": [*POSITIVE, 1.5],
    "ledger": ["a.ledger", 1, True, {}],
    "classes": [0, "ab", [1], [], 3.0, True, [[0, 1], [1, 2]], [0.0, 1.0, 2.0, NAN]],
    "class_weight": [
        *["other", 1, 1.0, True, NAN, "1", 1j, [[1, 1, 1]]],
        *[[1.0], [1.0] * 4, [1, 1, 0], [1, 1, -1], [1, 1, NAN], [1, 1, INF]],
        *[[1, 1, True], [1, 1, "1"], [1, 1, 1e10]],
        *[{5: 1.0}, {"a": 1.0}, {0: 0.0}, {0: -1.0}, {0: NAN}, {0: True}, {0: None}],
    ],
    "max_labels": [value for value in COUNT if value is not None],
    "center": [*FLAG, [1.0, 2.0], [0.0] * 3 + [NAN], [INF] * 4, ["a"] * 4, [True] * 4],
    "row_scaling": CHOICE,
    "clip_norm": [*POSITIVE, None, 1e-7, 1e7],
    "fit_intercept": FLAG,
    "intercept_scaling": [*POSITIVE, None],
    "intercept_init": [NAN, INF, -INF, True, "1", None, [1.0]],
    "loss": CHOICE,
    "n_iter": [*COUNT, 10**9],
    "learning_rate": POSITIVE,
    "optimizer": CHOICE,
    "ridge": NOT_NEGATIVE,
    "alpha": [*NOT_NEGATIVE, None],
    "gram_clip_norm": [*POSITIVE, 1e7],
    "gradient_clip_norm": [*POSITIVE, 1e7],
    "gram_noise": CHOICE,
    "hessian_noise": CHOICE,
    "class_gram": FLAG,
    "iterate": CHOICE,
    "sampling_prob": [0, 0.0, -0.5, 1.5, NAN, INF, True, "1", None],
    "prior": ["a", True, [[NAN] * 4] * 3, [[1.0] * 4] * 2, [[1.0] * 4] * 3],
    "public": ["a", True, 1.0, [[NAN] * 4], [[1.0] * 3], [1.0] * 4, [[]], [[1j] * 4]],
    "random_state": [-1, 2**64, True, 1.5, NAN, "0", [0]],
    "user_bound": CHOICE,
    "verbose": [-1, 1.5, NAN, "1", None],
}


ACCEPTED = [
    (DPNewton, "gradient_clip_norm", None),
    (DPFC, "gradient_clip_norm", None),
    (DPFC, "n_iter", None),
    (DPAdamLinear, "n_iter", None),
    (DPAdamLinear, "intercept_init", None),
]


def parameters(cls):
    return list(inspect.signature(cls).parameters)


CASES = [
    (cls, name, value)
    for cls in ESTIMATORS
    for name in parameters(cls)
    for value in WRONG.get(name, ())
    if (cls, name, value) not in ACCEPTED
]


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_every_parameter_is_tested_here(cls):
    assert set(parameters(cls)) <= set(WRONG)


@pytest.mark.parametrize(
    ("cls", "name", "value"),
    CASES,
    ids=[f"{cls.__name__}-{name}-{value!r}" for cls, name, value in CASES],
)
def test_fit_refuses_a_wrong_parameter(cls, name, value, three_classes):
    """TypeError or ValueError with its name, and nothing is fitted."""
    clf = cls(**{name: value})
    with pytest.raises((TypeError, ValueError), match=name):
        clf.fit(*three_classes)
    fitted = {"coef_", "intercept_", "center_", "classes_", "n_iter_", "privacy_"}
    assert not fitted & set(vars(clf))


@pytest.mark.parametrize("name", sorted(WRONG))
def test_init_checks_nothing(name):
    for cls in ESTIMATORS:
        if name in parameters(cls):
            for value in WRONG[name]:
                assert getattr(cls(**{name: value}), name) is value


def test_init_takes_keywords_only(estimator):
    with pytest.raises(TypeError, match="positional"):
        estimator(1.0)


def test_fit_refuses_the_squared_loss_for_newton(three_classes):
    with pytest.raises(
        ValueError, match="loss must be one of 'auto', 'softmax', 'sigmoid'"
    ):
        DPNewton(loss="squared").fit(*three_classes)


@pytest.mark.parametrize(
    "options",
    [
        {"sampling_prob": 0.5},
        {"sampling_prob": 0.5, "accounting": "pld", "adjacency": "replace_one"},
        {"sampling_prob": 0.5, "accounting": "pld", "rho": 0.1},
    ],
)
def test_fit_refuses_sampling_it_cannot_account(options, three_classes):
    with pytest.raises(PrivacyError, match="sampled records must use"):
        DPAdamLinear(**options).fit(*three_classes)


@pytest.mark.parametrize(
    ("one", "two"),
    [("epsilon", "rho"), ("epsilon", "noise_multiplier"), ("rho", "noise_multiplier")],
)
def test_fit_refuses_two_budgets(estimator, one, two, three_classes):
    with pytest.raises(ValueError, match=f"{one} and {two}"):
        estimator(**{one: 1.0, two: 1.0}).fit(*three_classes)


@pytest.mark.parametrize("number", [int, np.int32, np.float32, np.float16])
@pytest.mark.parametrize(
    ("cls", "names"),
    [
        (DPLeastSquares, ["clip_norm", "alpha", "ridge"]),
        (DPNewton, ["clip_norm", "ridge", "learning_rate"]),
        (DPFC, ["clip_norm", "gram_clip_norm", "gradient_clip_norm", "ridge"]),
        (DPAdamLinear, ["clip_norm", "gradient_clip_norm", "learning_rate", "ridge"]),
    ],
)
def test_fit_does_not_depend_on_the_type_of_number(cls, names, number, three_classes):
    """Sensitivities in float16 would be too small by 5e-4."""

    def fitted(convert):
        value = 3 if number in (int, np.int32) else float(np.float16(0.3))
        options = {name: convert(value) for name in names}
        options["epsilon"] = convert(2)
        return cls(random_state=0, **options).fit(*three_classes)

    one, two = fitted(number), fitted(float)
    assert one.privacy_ == two.privacy_
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-6, atol=1e-12)
