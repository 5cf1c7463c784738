"""Warnings that are held back while data is read."""

import threading
import warnings

from privfeat._messages import without_data, without_warnings
from privfeat.exceptions import PrivacyWarning
from tests.pitfalls.conftest import SECRET


def test_fits_in_threads_leave_the_warnings_of_later_fits():
    """Two threads that leave a door in another order than they came, and a third."""
    began, second_in, first_out = (threading.Event() for _ in range(3))
    seen = []

    def first():
        began.set()
        second_in.wait(60)
        warnings.warn(SECRET, UserWarning, stacklevel=1)

    def second():
        began.wait(60)
        second_in.set()
        first_out.wait(60)
        warnings.warn(SECRET, UserWarning, stacklevel=1)

    def enter_first():
        without_data(first)
        with warnings.catch_warnings(record=True) as caught:  # beside the second
            warnings.simplefilter("always")
            warnings.warn("of another thread", PrivacyWarning, stacklevel=1)
        seen.extend(str(one.message) for one in caught)
        first_out.set()

    before, show = [*warnings.filters], warnings.showwarning
    threads = [threading.Thread(target=enter_first)]
    threads += [threading.Thread(target=without_data, args=[second])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert seen == ["of another thread"]
    assert (warnings.filters, warnings.showwarning) == (before, show)


def test_a_door_that_was_left_takes_no_more_warnings():
    with without_warnings() as texts:
        _, kept, *_ = warnings.filters[0]  # as another thread may keep it
        warnings.warn(SECRET, UserWarning, stacklevel=1)
    assert texts == [SECRET]
    assert not kept.match("later")
