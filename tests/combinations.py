"""Which combinations of parameters the fast tests run: a pytest plugin.

Stacked ``parametrize`` and fixtures with parameters multiply. Of the combinations of
one test, so many stay among the fast tests that each value of each parameter is in one
of them; the others are marked ``more``, and run by ``make test-slow``. Parameters that
one ``parametrize`` gives together are one value. Where values take long, ``few`` leaves
the first ones alone to the fast tests.
"""

from collections import defaultdict

import pytest

ELSEWHERE = ("slow", "more", "gpu", "realdata", "postgres", "browser")


def few(count, values):
    """Return values for ``parametrize``, of which the fast tests have the first few."""
    sets = [each if isinstance(each, tuple) else (each,) for each in values]
    marks = [() if place < count else pytest.mark.more for place in range(len(sets))]
    return [pytest.param(*s, marks=m) for s, m in zip(sets, marks, strict=True)]


def values_of(item):
    """Return the values that a test has of its parameters: by identity, like arrays."""
    params = item.callspec.params
    names = [mark.args[0] for mark in item.iter_markers("parametrize")]
    # scikit-learn joins two names by a comma
    names = [part.split(", ") if isinstance(part, str) else part for part in names]
    together = [tuple(part) for part in names]
    of_fixtures = params.keys() - {name for part in together for name in part}
    together += [(name,) for name in of_fixtures]
    return {(part, tuple(id(params[name]) for name in part)) for part in together}


def covering(combinations):
    """Return the places of a few sets that hold what all hold together, greedily."""
    missing, kept = set().union(*combinations), []
    while missing:
        gains = [len(values & missing) for values in combinations]
        kept.append(gains.index(max(gains)))
        missing -= combinations[kept[-1]]
    return kept


def pytest_collection_modifyitems(items):
    """Mark what is no fast test; after all that other plugins mark as slow."""
    tests = defaultdict(list)
    for item in items:
        elsewhere = any(map(item.get_closest_marker, ELSEWHERE))
        if hasattr(item, "callspec") and not elsewhere:
            tests[item.parent, item.originalname].append(item)
    for same in tests.values():
        values = [values_of(item) for item in same]
        varied = set().union(*values) - set.intersection(*values)
        if len({part for part, _ in varied}) < 2:
            continue  # each value is a combination
        fast = covering(values)
        for place, item in enumerate(same):
            if place not in fast:
                item.add_marker(pytest.mark.more)
