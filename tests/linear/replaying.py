"""Two fits with the same releases, and what may differ between them.

`replay` fits one data set, then its neighbour with the releases of the first fit given
as answers, as the definition of adaptive composition has it.
"""

import numpy as np

from privfeat.audit.noise_check import noise_checks, repetition_p_value
from privfeat.audit.replay import movements


def replay(spy, make, one, two):
    """Return both fitted estimators and both lists of exact sums.

    ``one`` and ``two`` are what ``fit`` takes.
    """
    first, calls = recorded(spy, make, one)
    second, other_calls = answered(spy, make, calls, two)
    return first, second, calls, other_calls


def recorded(spy, make, data):
    """Return an estimator fitted to ``data``, and its exact sums with their releases.

    To be given to `answered` for each neighbour of ``data``.
    """
    spy.start()
    return make().fit(*data), spy.calls


def answered(spy, make, calls, data):
    """Return an estimator fitted with the releases of ``calls``, and its exact sums."""
    spy.start(answers=calls)
    return make().fit(*data), spy.calls


def check_sensitivity(statement, calls, other_calls):
    """Fail if a release moves by more than declared, its blocks stacked."""
    moved = movements(statement, calls, other_calls)
    assert all(movement.ok for movement in moved), moved


def state(clf):
    return {name: value for name, value in vars(clf).items() if name.endswith("_")}


def assert_same_state(one, two):
    assert state(one).keys() == state(two).keys()
    for name, value in state(one).items():
        np.testing.assert_array_equal(value, state(two)[name], err_msg=name)


def check_noise(statement, calls, rate=1e-6):
    """Chi-square test of every query's stddev; false-positive rate ``rate`` each."""
    checks = noise_checks(statement, calls)
    for record, check in zip(statement.releases, checks, strict=True):
        assert record.noise_stddev == record.noise_multiplier * record.l2_sensitivity
        assert rate / 2 < check.p_value < 1 - rate / 2


def check_independence(calls, rate=1e-6):
    """Test the correlation of each two blocks; false-positive rate ``rate`` in all."""
    assert repetition_p_value(calls) > rate
