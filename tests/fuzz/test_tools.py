"""The practice tools: what is given is refused in words, or answered with numbers."""

import dataclasses
import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from privfeat import DPLeastSquares, TemperatureScaling, compose, search_cost
from privfeat.analysis.batches import noise_by_batch_size
from privfeat.analysis.calibration import calibration_report
from privfeat.analysis.planning import expected_loss, plan
from privfeat.analysis.tan import (
    TAN,
    closed_form_epsilon,
    constant_tan_settings,
    simulate,
)
from privfeat.audit.membership import bounds
from tests.fuzz.test_estimators import (
    REFUSALS,
    entries,
    matrices,
    odd,
    refused,
    targets,
)

BUDGET = {"epsilon": 1.0, "delta": 1e-5}
TOOLS = {
    "TAN": lambda a, b: TAN(a, b, 10),
    "TAN steps": lambda a, b: TAN(0.1, a, b),
    "bounds": lambda a, b: bounds(a, b, 0.1),
    "bounds fpr": lambda a, b: bounds(1.0, a, b),
    "closed_form_epsilon": closed_form_epsilon,
    "constant_tan_settings": lambda a, b: constant_tan_settings(a, 10, b),
    "constant_tan_settings steps": lambda a, b: constant_tan_settings(
        64, a, 1.0, step_factors=[b]
    ),
    "expected_loss": expected_loss,
    "noise_by_batch_size": lambda a, b: noise_by_batch_size(
        100, [a], **BUDGET, n_epochs=b
    ),
    "plan": lambda a, b: plan(100, a, b, **BUDGET),
    "plan budget": lambda a, b: plan(100, 8, 3, epsilon=a, delta=b),
    "simulate": lambda a, b: simulate(0.1, a, 10, b),
    "compose": lambda a, b: compose(a, delta=b),
    "search_cost": lambda a, b: search_cost(a, delta=b),
}


values = st.one_of(odd, st.sampled_from([1, 2, 64, 0.5, 1.0, 1e-5, 10.0, [8, 16, 32]]))


def numbers_in(found):
    """Yield all numbers of a result."""
    if dataclasses.is_dataclass(found):
        found = list(vars(found).values())
    if isinstance(found, list | tuple):
        for item in found:
            yield from numbers_in(item)
    elif isinstance(found, float | np.ndarray):
        yield from np.ravel(found)


@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_refuses_or_answers_with_numbers(name, tried, examples):
    @examples(60)
    @given(one=values, two=values)
    def attempt(one, two):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = TOOLS[name](one, two)
            except REFUSALS:
                tried.append("refused")
                return
        assert not any(math.isnan(number) for number in numbers_in(found))
        tried.append("answered")

    attempt()


probabilities = st.one_of(
    matrices,
    hnp.arrays(np.float64, (6, 2), elements=entries),
    st.just(np.full((6, 2), 0.5)),
)


def test_a_calibration_report_is_refused_or_finite(tried, examples):
    @examples(60)
    @given(y=targets, found=probabilities, n_bins=st.one_of(st.just(15), odd))
    def attempt(y, found, n_bins):
        try:
            report = calibration_report(y, found, n_bins=n_bins)
        except REFUSALS as error:
            tried.append(refused(error))
            return
        scores = (report.accuracy, report.nll, report.brier, report.ece, report.mce)
        assert not np.any(np.isnan(scores))
        tried.append("reported")

    attempt()


@pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
def test_a_temperature_is_refused_or_positive(tried, examples):
    rng = np.random.default_rng(0)
    clf = DPLeastSquares(classes=range(2)).fit(rng.normal(size=(20, 3)), [0, 1] * 10)

    @examples(40)
    @given(X=matrices, y=targets, epsilon=st.one_of(st.just(1.0), odd))
    def attempt(X, y, epsilon):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                scaled = TemperatureScaling(clf, epsilon=epsilon).fit(X, y)
            except REFUSALS as error:
                tried.append(refused(error))
                return
        assert 0.0 < scaled.temperature_ < math.inf
        tried.append("scaled")

    attempt()
