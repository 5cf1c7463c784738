"""Two fits with the same releases, and what may differ between them.

`replay` fits one data set, then its neighbour with the releases of the first fit given
as answers, as the definition of adaptive composition has it.
"""

import numpy as np

from privfeat.audit.replay import movements


def replay(spy, make, one, two):
    """Return both fitted estimators and both lists of exact sums.

    ``one`` and ``two`` are what ``fit`` takes.
    """
    spy.start()
    first = make().fit(*one)
    calls = spy.calls
    spy.start(answers=calls)
    second = make().fit(*two)
    return first, second, calls, spy.calls


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
