"""Warnings inside a charged fit, beside threads and scikit-learn's jobs."""

import re
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from sklearn.utils.parallel import Parallel, delayed

from privfeat._messages import without_warnings
from privfeat._warnings import warn, warnings_shown


@pytest.mark.parametrize("left_open", [False, True])
def test_jobs_of_sklearn_take_filters_over_that_a_thread_put_back(left_open):
    """They read the pattern of each filter, also of those of a fit that has ended."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "one")
        shown = warnings_shown()
        shown.__enter__()
        copy = list(warnings.filters)
        if not left_open:
            shown.__exit__(None, None, None)
            warnings.filters[:] = copy  # as another thread does that saw them
        assert Parallel(n_jobs=2, prefer="threads")([delayed(len)("ab")]) == [2]
        if left_open:
            shown.__exit__(None, None, None)


def test_jobs_of_sklearn_run_where_warnings_are_dropped():
    """Forests predict in such jobs: those of another thread keep their warnings."""
    with (
        warnings.catch_warnings(),
        ExitStack() as dropped,
        ThreadPoolExecutor(1) as one,
    ):
        warnings.resetwarnings()
        texts = dropped.enter_context(without_warnings())
        assert Parallel(n_jobs=1)([delayed(warnings.warn)("own")]) == [None]
        (own,) = [f[1] for f in warnings.filters if hasattr(f[1], "texts")]
        assert re.match(own.pattern, "any text")
        assert one.submit(lambda: own.pattern).result() == "(?!)"
        assert one.submit(Parallel(n_jobs=1), [delayed(len)("ab")]).result() == [2]
    assert texts in ([], ["own"])
    assert own.pattern == "(?!)"


@pytest.mark.parametrize("late", [False, True])
def test_filters_that_jobs_made_of_hidden_warnings_are_taken_out(late):
    """Two threads leave ``catch_warnings`` in another order than they came."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with without_warnings():
            (own,) = [f[1] for f in warnings.filters if hasattr(f[1], "texts")]
            warnings.filterwarnings("ignore", own.pattern)  # as a job does
            copy = list(warnings.filters)
            warn("hidden here")
        if late:
            warnings.filters[:] = copy
        warn("shown afterwards")
        warnings.warn("as all are", stacklevel=1)
    assert [str(one.message) for one in caught] == ["shown afterwards", "as all are"]


def test_filters_of_ended_fits_are_taken_out():
    with warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.filterwarnings("ignore", "one")
        before = list(warnings.filters)
        with warnings_shown():
            copy = list(warnings.filters)
        warnings.filters[:] = copy
        with warnings_shown():
            pass
        assert list(warnings.filters) == before


@pytest.mark.parametrize("whole", [False, True])
def test_a_pattern_matches_what_the_filter_matches(whole):
    """Filters that Python starts with have whole texts, not expressions."""
    with warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.filterwarnings("ignore", "on")
        if whole:
            warnings.filters[0] = ("ignore", "one", *warnings.filters[0][2:])
        with warnings_shown():
            shown = warnings.filters[0][1]
            for text in ("one", "two"):
                found = re.match(shown.pattern, text)
                assert bool(found) == shown.match(text) == (text == "one")
        assert not re.match(shown.pattern, "one")
        assert not shown.match("one")


def test_filters_do_not_double_with_each_fit_that_runs_at_once():
    """Twenty-four threads had 2**24 times the filters, and did not come back."""
    with warnings.catch_warnings(), ExitStack() as fits:
        warnings.simplefilter("error")
        before = len(warnings.filters)
        for n_fits in range(2, 14):
            fits.enter_context(warnings_shown())
            assert len(warnings.filters) <= n_fits * before
        with pytest.warns(UserWarning, match="shown"):
            warnings.warn("shown", stacklevel=1)
