"""Products have one thread while private records are read, whatever others ask for."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from privfeat import DPLeastSquares
from privfeat._process import keeps_one_thread, one_thread_a_product, times_matrix
from privfeat.exceptions import PrivacyError, PrivacyWarning
from privfeat.metrics.predictions import record_by_record
from tests.later import Later

torch = Later("torch")

SET = 3


def numbers() -> set[int]:
    known = threadpool_info()
    return {each["num_threads"] for each in known if each["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def several_threads():
    """Set the number as a script does at its start: it alone may change it, then."""
    with threadpool_limits(SET, user_api="blas"):
        assert numbers() == {SET}
        yield


@contextmanager
def in_another_thread(body) -> Iterator[None]:
    """Enter a body in another thread, and leave it there at the end."""
    inside, leave = Event(), Event()

    def hold():
        with body():
            inside.set()
            assert leave.wait(60)

    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(hold)
        assert inside.wait(60)
        yield
        leave.set()
        held.result()


def seen() -> set[int]:
    with one_thread_a_product() as n_before:
        assert (n_before, keeps_one_thread()) == (SET, True)
        return numbers()


def test_a_thread_is_limited_that_did_not_set_the_number():
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(seen).result() == {1}
    assert numbers() == {SET}
    assert not keeps_one_thread()


def test_limits_that_end_within_a_body_change_nothing():
    """As those that KMeans of scikit-learn sets around its work in another thread."""
    with one_thread_a_product():
        with in_another_thread(lambda: threadpool_limits(2, user_api="blas")):
            assert numbers() == {1}
        assert numbers() == {1}
    assert numbers() == {SET}


def test_the_first_to_leave_takes_nothing_from_the_last():
    with in_another_thread(one_thread_a_product):
        assert seen() == {1}
        with threadpool_limits(2, user_api="blas"):
            assert numbers() == {1}
        assert seen() == {1}
    assert numbers() == {SET}


def test_a_body_that_fails_sets_the_number_back():
    with pytest.raises(ZeroDivisionError), one_thread_a_product():
        1 / 0  # noqa: B018 - the error is meant
    assert numbers() == {SET}
    assert seen() == {1}


def test_a_number_that_was_changed_by_force_is_an_error():
    def change():
        for library in ThreadpoolController().select(user_api="blas").lib_controllers:
            library.clear_controlling_thread(force=True)
            library.set_num_threads(2)

    with (
        pytest.raises(RuntimeError, match="got another number by other code"),
        one_thread_a_product(),
    ):
        change()


def test_predictions_in_a_thread_ask_there(plant):
    """Whether it holds is asked within the body; else each row goes by itself."""
    X = np.random.default_rng(0).normal(size=(40, 4))
    clf = DPLeastSquares(classes=[0, 1], random_state=0)
    with pytest.warns(PrivacyWarning, match="random_state"):
        clf.fit(X, np.arange(40) % 2)
    shapes = []

    def shorten(given):
        shapes.append(given.shape)
        assert numbers() == {1}
        return given

    with ThreadPoolExecutor(1) as pool:
        arguments = (clf, "predict_proba", X, shorten)
        found = pool.submit(record_by_record, *arguments).result()
    assert shapes == [(1024, 2)]
    np.testing.assert_array_equal(found, clf.predict_proba(X))
    product = times_matrix(X, clf.coef_.T)
    plant("whether products keep to one thread", lambda: False)
    np.testing.assert_allclose(times_matrix(X, clf.coef_.T), product, rtol=1e-12)


def test_a_thread_that_takes_subnormal_numbers_for_zero_predicts_nothing():
    """Of float32 they would be zero, of an array that was float64 before they stay."""
    torch.set_flush_denormal(True)
    try:
        with (
            pytest.raises(PrivacyError, match="subnormal numbers must not be taken"),
            one_thread_a_product(),
        ):
            pass
    finally:
        torch.set_flush_denormal(False)
    with one_thread_a_product():
        assert keeps_one_thread()
