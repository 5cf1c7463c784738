import numpy as np
import pytest
from scipy.stats import binomtest

from privfeat.report.evaluation import exact_recall


def test_exact_recall_has_the_interval_of_wilson():
    y = np.array(["a"] * 8 + ["b"] * 5)
    second = np.array([0.1] * 6 + [0.9] * 2 + [0.8] * 5)
    found = exact_recall(y, np.c_[1.0 - second, second], ["a", "b"])
    assert found.value.tolist() == [0.75, 1.0]
    expected = binomtest(6, 8).proportion_ci(method="wilson")
    assert (found.low[0], found.high[0]) == pytest.approx((expected.low, expected.high))


def test_exact_recall_of_a_class_without_records_is_unknown():
    found = exact_recall([0, 0], [[0.9, 0.1], [0.8, 0.2]], [0, 1])
    assert np.isnan(found.value[1])
    assert (found.low[1], found.high[1]) == (0.0, 1.0)
