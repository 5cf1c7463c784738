"""The estimators against the loops of ``tests/reference.py``.

Three comparisons: without privacy (``epsilon=inf``), on the private fixed-point path
with hardly any noise, and with real noise, which a spy hands to the reference.
Tolerances are relative to the largest score: 1e-4 covers float32 scores, 1e-3 rows and
residuals rounded to 20 bits.
"""

import math

import numpy as np
import pytest

from privfeat import DPFC, DPAdamLinear, DPLeastSquares, DPNewton
from tests import reference

pytestmark = [
    pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning"),
]
INTERCEPTS = [
    {"fit_intercept": False},
    {"fit_intercept": True, "intercept_scaling": 0.5},
]
ROW_OPTIONS = [
    {"row_scaling": scaling, "center": center, **intercept}
    for center in (False, True)
    for scaling in ("unit", "clip")
    for intercept in INTERCEPTS
]
ROW_IDS = [
    center + rows
    for center in ("", "center-")
    for rows in ("unit", "unit-intercept", "clip", "clip-intercept")
]
FITS = [
    (DPLeastSquares, {"ridge": 2.0}),
    (DPLeastSquares, {"ridge": 2.0, "gram_noise": "full"}),
    (DPLeastSquares, {"ridge": 2.0, "class_gram": True, "alpha": 0.5}),
    (
        DPLeastSquares,
        {"ridge": 2.0, "class_gram": True, "alpha": 0.5, "gram_noise": "full"},
    ),
    *[
        (
            DPNewton,
            {
                "loss": loss,
                "n_iter": 3,
                "ridge": 2.0,
                "learning_rate": 0.8,
                "hessian_noise": noise,
                "gradient_clip_norm": clip_norm,
            },
        )
        for loss, noise, clip_norm in [
            ("softmax", "symmetric", 0.4),
            ("softmax", "full", None),
            ("sigmoid", "symmetric", None),
            ("sigmoid", "full", 0.4),
        ]
    ],
    *[
        (
            DPFC,
            {
                "loss": loss,
                "n_iter": 4,
                "ridge": 3.0,
                "learning_rate": 0.7,
                "gram_noise": noise,
                "gradient_clip_norm": 0.4,
                "gram_clip_norm": 0.8,
            },
        )
        for loss in ("softmax", "sigmoid", "squared")
        for noise in ("symmetric", "full")
    ],
    *[
        (
            DPAdamLinear,
            {
                "loss": loss,
                "n_iter": 4,
                "ridge": 0.1,
                "learning_rate": 0.05,
                "optimizer": optimizer,
                "iterate": iterate,
                "gradient_clip_norm": 0.4,
                "intercept_init": 0.0,
            },
        )
        for loss, optimizer, iterate in [
            ("softmax", "adam", "average"),
            ("softmax", "sgd", "last"),
            ("sigmoid", "adam", "last"),
            ("sigmoid", "momentum", "last"),
            ("squared", "sgd", "average"),
        ]
    ],
]
IDS = [
    "-".join([cls.__name__, *(str(v) for v in options.values())])
    for cls, options in FITS
]


def expected_scores(
    cls, options, rows_options, X, y, *, private, noise=None, mean_stddev=0.0
):
    """Return the reference's scores of the training rows."""
    first_gram = noise is not None and options.get("loss") == "softmax"
    noise = noise or reference.no_noise
    row_scaling = rows_options["row_scaling"]
    radius = 1.0 if private or row_scaling == "unit" else math.inf
    if rows_options["center"]:
        mean = reference.feature_mean(
            X,
            row_scaling=row_scaling,
            clip_norm=radius,
            noise=noise,
            stddev=mean_stddev,
        )
        X = reference.centred(X, mean, row_scaling=row_scaling)
    rows = reference.bounded_rows(
        X,
        clip_norm=radius,
        row_scaling=row_scaling,
        intercept_scaling=rows_options.get("intercept_scaling"),
    )
    options = dict(options)
    loss = options.get("loss", "squared")
    labels, n_outputs = y, len(np.unique(y))
    if n_outputs == 2 and loss == "sigmoid":
        labels, n_outputs = y - 1, 1
    options.pop("gram_noise", None)
    options.pop("hessian_noise", None)
    if cls is DPLeastSquares:
        options.setdefault("class_gram", False)
        coef = reference.least_squares(rows, labels, n_outputs, noise=noise, **options)
        return _scores(coef, rows_options, X)
    init = options.pop("intercept_init", 0.0)
    coef = np.zeros((n_outputs, rows.shape[1]))
    if rows_options["fit_intercept"] and init:
        scale = rows_options["intercept_scaling"]
        unit = rows_options["row_scaling"] == "unit"
        coef[:, -1] = init / (scale / math.hypot(1.0, scale) if unit else scale)
    for name in ("gradient_clip_norm", "gram_clip_norm"):
        if name in options and (options[name] is None or not private):
            options[name] = math.inf
    if cls is DPNewton:
        options["first_gram"] = first_gram
    if cls is DPAdamLinear:
        options["clip_norm"] = options.pop("gradient_clip_norm")
    algorithm = {
        DPNewton: reference.newton,
        DPFC: reference.feature_covariance,
        DPAdamLinear: reference.first_order,
    }[cls]
    coef = algorithm(rows, labels, coef, noise=noise, **options)
    return _scores(coef, rows_options, X)


def _scores(coef, rows_options, X):
    """Scores of rows as the model sees them: never clipped, of unit norm if so set."""
    unit = rows_options["row_scaling"] == "unit"
    rows = reference.bounded_rows(
        X,
        clip_norm=1.0 if unit else math.inf,
        row_scaling=rows_options["row_scaling"],
        intercept_scaling=rows_options.get("intercept_scaling"),
    )
    scores = rows @ coef.T
    if scores.shape[1] == 2:
        return scores[:, 1] - scores[:, 0]
    return scores[:, 0] if scores.shape[1] == 1 else scores


def assert_close(found, expected, rtol):
    assert found.shape == expected.shape
    assert np.max(np.abs(found - expected)) <= rtol * np.max(np.abs(expected))


@pytest.mark.parametrize(("cls", "options"), FITS, ids=IDS)
@pytest.mark.parametrize("rows_options", ROW_OPTIONS, ids=ROW_IDS)
def test_fit_without_privacy_equals_the_paper(
    cls, options, rows_options, three_classes
):
    X, y = three_classes
    clf = cls(epsilon=math.inf, **options, **rows_options).fit(X, y)
    expected = expected_scores(cls, options, rows_options, X, y, private=False)
    assert_close(clf.decision_function(X), expected, 1e-4)


@pytest.mark.parametrize(("cls", "options"), FITS, ids=IDS)
@pytest.mark.parametrize("rows_options", ROW_OPTIONS, ids=ROW_IDS)
def test_fit_with_hardly_any_noise_equals_the_paper(
    cls, options, rows_options, three_classes
):
    X, y = three_classes
    clf = cls(noise_multiplier=1e-5, **options, **rows_options).fit(X, y)
    expected = expected_scores(cls, options, rows_options, X, y, private=True)
    assert_close(clf.decision_function(X), expected, 1e-3)


@pytest.mark.parametrize("place", [1, 5], ids=["raw", "center"])
@pytest.mark.parametrize(("cls", "options"), FITS, ids=IDS)
def test_fit_on_two_classes_equals_the_paper(cls, options, place, two_classes):
    X, y = two_classes
    rows_options = ROW_OPTIONS[place]
    clf = cls(noise_multiplier=1e-5, **options, **rows_options).fit(X, y)
    expected = expected_scores(cls, options, rows_options, X, y, private=True)
    assert_close(clf.decision_function(X), expected, 1e-3)


@pytest.mark.parametrize("place", [0, 4, 6], ids=["raw", "center", "center-clip"])
@pytest.mark.parametrize(("cls", "options"), FITS, ids=IDS)
def test_fit_with_noise_equals_the_paper_given_that_noise(
    cls, options, place, three_classes, spy
):
    """Noise of 5 % of a record's bound, so that noisy matrices stay definite."""
    X, y = three_classes
    rows_options = ROW_OPTIONS[place]
    clf = cls(noise_multiplier=0.05, random_state=0, **options, **rows_options)
    clf.fit(X, y)
    means = [call.release.noise_stddev for call in spy.of("feature_mean")]

    def noise(name, index, shape):
        drawn = spy.of(name)[index].noise
        assert drawn.shape == shape
        return drawn

    expected = expected_scores(
        cls,
        options,
        rows_options,
        X,
        y,
        private=True,
        noise=noise,
        mean_stddev=sum(means),
    )
    assert_close(clf.decision_function(X), expected, 1e-3)


@pytest.mark.parametrize("cls", [DPNewton, DPFC, DPAdamLinear])
@pytest.mark.parametrize("row_scaling", ["unit", "clip"])
def test_fit_starts_from_the_initial_intercept(cls, row_scaling, three_classes):
    """The papers' sigmoid setting starts every class at a probability of exp(-10)."""
    X, y = three_classes
    steps = {"n_iter": 1, "learning_rate": 1e-9}
    if cls is not DPAdamLinear:
        steps["ridge"] = 1.0
    clf = cls(
        epsilon=math.inf,
        loss="sigmoid",
        row_scaling=row_scaling,
        fit_intercept=True,
        intercept_init=-10.0,
        intercept_scaling=2.0,
        **steps,
    ).fit(X, y)
    np.testing.assert_allclose(clf.decision_function(X), -10.0, atol=1e-5)
