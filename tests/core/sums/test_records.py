"""Threads, and that sums of so many rows are exact, rounded within the margin."""

import threading
import time

import jax
import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_info

from privfeat.core.bounds.grid import GRID_BITS
from privfeat.core.bounds.sensitivity import ROUNDING
from privfeat.core.sums.arithmetic.gram import most_rows
from privfeat.core.sums.records import (
    CHUNK_ROWS,
    MAX_ROWS,
    check_number,
    full_chunks,
)
from privfeat.core.sums.totals import in_order
from privfeat.solvers import spectrum


def test_products_of_all_rows_of_a_call_add_up_exactly_in_float64():
    assert (2**GRID_BITS) ** 2 * most_rows(1) <= 2**53
    assert most_rows(1) == 8 * CHUNK_ROWS
    assert most_rows(150_000) == CHUNK_ROWS
    # 256 MiB hold four chunks of these, and not of one column more
    assert most_rows(2**13) == 4 * CHUNK_ROWS
    assert most_rows(2**13 + 1) == 3 * CHUNK_ROWS


def test_the_margin_covers_the_rounding_of_the_largest_sums():
    """Of one sum in each of two neighbours: half a unit in the last place."""
    assert 2 * MAX_ROWS * 2.0**-53 <= ROUNDING


def test_so_many_records_may_be_counted_and_no_more():
    check_number(MAX_ROWS)
    with pytest.raises(ValueError, match="at most 4294967296 rows, got more"):
        check_number(MAX_ROWS + 1)


@pytest.mark.parametrize("n_rows", [0, 1, CHUNK_ROWS, CHUNK_ROWS + 1])
def test_full_chunks_hold_all_rows_and_zeros(n_rows):
    rows = np.arange(1, 2 * n_rows + 1, dtype=np.float32).reshape(n_rows, 2)
    chunks = list(full_chunks(rows))
    assert all(chunk.shape == (CHUNK_ROWS, 2) for chunk in chunks)
    together = np.concatenate([*chunks, np.zeros((1, 2), np.float32)])
    assert together.dtype == np.float32
    np.testing.assert_array_equal(together[:n_rows], rows)
    assert not together[n_rows:].any()
    assert len(chunks) == -(-n_rows // CHUNK_ROWS)


@pytest.mark.parametrize("kind", [np.asarray, list, pd.DataFrame])
def test_rows_come_alone_and_no_others(kind):
    """A row of zeros may be nothing that a model of others takes."""
    rows = kind(np.arange(6.0).reshape(3, 2))
    alone = list(full_chunks(rows, alone=True))
    assert [type(each) for each in alone] == [type(rows)] * 3
    np.testing.assert_array_equal(np.concatenate(alone), np.asarray(rows))


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("made", [np.asarray, pd.DataFrame])
def test_who_writes_into_a_chunk_changes_no_record(alone, made):
    """As a scaler with ``copy=False`` does."""
    rows = made(np.ones((3, 2)))
    if not alone:
        rows = np.asarray(rows)
    for chunk in full_chunks(rows, alone=alone):
        where = chunk if isinstance(chunk, np.ndarray) else chunk.iloc
        where[0, 0] = 0.0
    assert np.all(np.asarray(rows) == 1.0)


def test_results_come_in_the_order_of_the_calls():
    drawn = []

    def calls():
        for number in range(9):
            drawn.append(number)
            yield number, 1

    def slow(number, one):
        time.sleep(0.01 * (number % 3))
        return number + one, jax.config.jax_enable_x64

    found = []
    for result, wide in in_order(slow, calls()):
        # arguments are drawn a few calls ahead of the results, not all at once
        assert len(drawn) - len(found) <= 2 + blas_threads()[0]
        assert wide
        found.append(result)
    assert found == list(range(1, 10))


def blas_threads():
    """The threads of a product before sums, at least one."""
    info = threadpool_info()
    return [lib["num_threads"] for lib in info if lib["user_api"] == "blas"] or [1]


def test_a_product_has_one_core_while_sums_run_and_all_after_the_last():
    before = blas_threads()
    first, second = (in_order(lambda _: blas_threads(), [(0,), (0,)]) for _ in range(2))
    assert set(next(first)) == set(next(second)) == {1}
    first.close()
    assert set(blas_threads()) == {1}
    second.close()
    assert blas_threads() == before


def test_products_have_their_cores_back_after_eigenvectors_beside_a_sum(plant):
    """The eigenvectors of one fit end while the sum of another one runs."""
    before = blas_threads()
    running = in_order(lambda _: blas_threads(), [(0,), (0,)])
    genuine = plant.genuine("eigenvectors of a matrix")

    def beside(*arguments, **options):
        next(running)
        return genuine(*arguments, **options)

    plant("eigenvectors of a matrix", beside)
    spectrum.eigenvectors(np.eye(3))
    assert set(blas_threads()) == {1}
    running.close()
    assert blas_threads() == before


def test_products_have_their_cores_back_after_an_error():
    before = blas_threads()

    def fail(_):
        raise KeyError

    with pytest.raises(KeyError):
        list(in_order(fail, [(0,)]))
    assert blas_threads() == before


def test_accelerators_are_called_one_after_the_other(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    main = threading.get_ident()
    found = list(in_order(lambda x: (x, threading.get_ident()), [(1,), (2,)]))
    assert found == [(1, main), (2, main)]
