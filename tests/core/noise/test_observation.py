"""Who watches a fit sees its releases, and nobody does afterwards."""

import ast

import numpy as np
import pytest

from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.plan import Query
from privfeat.core.noise.keys import KeyStream
from privfeat.core.noise.observation import leave_out, observe
from privfeat.core.sums.totals import ExactSum
from tests.audited import ROOT
from tests.core.mechanisms import charged_mechanism


@pytest.fixture
def release():
    """Return a function that releases a sum of zeros."""
    plan = plan_releases([Query("sum", 1.0)], epsilon=1.0)

    def draw():
        mechanism = charged_mechanism(plan, KeyStream(0))
        return mechanism.release("sum", ExactSum(np.zeros(3)))

    return draw


def test_observer_sees_the_sum_and_decides_what_the_fit_goes_on_with(release):
    genuine, seen = release(), []

    def watch(exact, released):
        seen.append((exact.value, released.value))
        return genuine

    with observe(watch):
        found = release()
    assert found is genuine
    ((exact, released),) = seen
    np.testing.assert_array_equal(exact, np.zeros(3))
    np.testing.assert_array_equal(released, genuine.value)


def test_observer_is_gone_after_the_fit_even_if_it_fails(release):
    def fail(*_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), observe(fail):
        release()
    assert release().name == "sum"


@pytest.mark.parametrize("arithmetic", ["float64", "exact"])
@pytest.mark.parametrize("probability", [0.5, 1.0])
def test_absent_records_draw_tails_and_nobody_else_notices(probability, arithmetic):
    query = Query("sum", 1.0, sampling_prob=probability)
    accounting = "pld" if probability < 1.0 else "exact"
    plan = plan_releases([query], noise_multiplier=4.0, accounting=accounting)
    missing = np.arange(100) < 10

    def mask():
        sampler = charged_mechanism(plan, KeyStream(3), arithmetic).sampler("sum")
        return np.ones(100, bool) if sampler is None else sampler(100)

    everyone = None if arithmetic == "exact" and probability < 1.0 else mask()
    with leave_out(missing):
        some = mask()
    assert not np.any(some[missing])
    assert np.any(some[~missing])
    if everyone is not None:  # coins of the operating system differ each time
        np.testing.assert_array_equal(some[~missing], everyone[~missing])
        assert np.any(mask()[missing])


def test_everyone_is_back_after_a_fit_that_fails():
    with pytest.raises(ZeroDivisionError), leave_out(np.ones(2, bool)):
        raise ZeroDivisionError
    plan = plan_releases([Query("sum", 1.0)], epsilon=1.0)
    assert charged_mechanism(plan, KeyStream(0)).sampler("sum") is None


def test_only_audits_observe_fits_or_leave_records_out():
    """They see exact sums, and choose records: no fit of a user may."""
    module = "privfeat.core.noise.observation"
    watching = {module, f"{module}.observe", f"{module}.leave_out"}
    package = ROOT / "privfeat"
    found = {
        file.relative_to(package).parts[0]
        for file in package.rglob("*.py")
        if watching & {*imported(file)}
    }
    assert found == {"audit"}


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
