"""From arrays and feature files to bounded rows."""

import jax
import numpy as np
import pytest

from privfeat import open_features
from privfeat.core.bounds.grid import grid_step
from privfeat.core.bounds.rows import clip_rows
from privfeat.core.sums.calls import CALL_ROWS
from privfeat.core.sums.processes import Team
from privfeat.core.sums.records import CHUNK_ROWS
from privfeat.core.sums.statistics import exact_gradient, exact_gram
from privfeat.data import write_features
from privfeat.estimation.rows.bounded import BoundedRows
from privfeat.exceptions import PrivacyError
from tests.later import Later

torch = Later("torch")

OPTIONS = {
    "row_scaling": "unit",
    "clip_norm": 1.0,
    "intercept_scaling": None,
    "team": Team(),
}


@pytest.fixture
def features():
    return np.random.default_rng(0).normal(size=(CHUNK_ROWS + 5, 3))


@pytest.fixture
def labels(features):
    return np.arange(len(features)) % 3


@pytest.fixture(params=[np.float16, np.float32])
def split(tmp_path, features, labels, request):
    """A feature file of two chunks, opened lazily."""
    path = tmp_path / "features.h5"
    write_features(path, {"train": (features.astype(request.param), labels)})
    return open_features(path)["train"]


def gathered(chunks, attribute):
    return np.concatenate([np.asarray(getattr(chunk, attribute)) for chunk in chunks])


def test_bounded_rows_holds_every_record_once_and_in_order(features, labels):
    rows = BoundedRows(features, labels[:, None], private=True, **OPTIONS)
    chunks = list(rows.chunks())
    assert {len(chunk.rows) for chunk in chunks} == {CHUNK_ROWS}
    expected = clip_rows(features, clip_norm=1.0, row_scaling="unit").rows
    n_rows = len(features)
    found = gathered(chunks, "rows")
    np.testing.assert_array_equal(found[:n_rows], expected)
    np.testing.assert_array_equal(gathered(chunks, "labels")[:n_rows, 0], labels)
    assert not found[n_rows:].any()
    assert np.all(gathered(chunks, "labels")[n_rows:] == -1)


TINY = np.float32(2.0) ** np.arange(-149, -80).astype(np.float32)


@pytest.mark.parametrize("center", [0.0, 0.1])
@pytest.mark.parametrize("row_scaling", ["unit", "clip"])
@pytest.mark.parametrize("constant", [None, 0.3])
def test_bounded_rows_of_every_type_are_the_same(row_scaling, constant, center):
    """One record of float64 gives all of an array that type.

    The shortest rows are scaled to unit norm; beside a constant that is not a power of
    two, norms of others are rounded in the order in which squares are added.
    """
    draw = np.random.default_rng(0)
    X = np.concatenate([draw.integers(-64, 65, (500, 3)), draw.normal(size=(500, 3))])
    X = np.concatenate(
        [X.astype(np.float16).astype(np.float32), TINY[:, None] * [1, 0, 2]]
    )
    parts = [X[:1000].astype(np.float16), X.astype(np.float32), X.astype(np.float64)]
    options = {**OPTIONS, "row_scaling": row_scaling, "intercept_scaling": constant}
    found = []
    for part in parts:
        rows = BoundedRows(part, np.zeros((len(part), 1), int), private=True, **options)
        rows.center = np.full(3, center)
        chunks = list(rows.chunks())
        found.append(
            [gathered(chunks, name)[: len(part)] for name in ("rows", "row_norms")]
        )
    for of_type in found:
        for some, all_ in zip(of_type, found[-1], strict=True):
            np.testing.assert_array_equal(some, all_[: len(some)])


def test_bounded_rows_does_not_share_memory_that_others_may_change(
    features, labels, plant
):
    """The bound reads a row twice: a change between would leave it too long."""
    expected = clip_rows(features, clip_norm=1.0, row_scaling="unit").rows
    rows = BoundedRows(features, labels[:, None], private=True, **OPTIONS)
    genuine = plant.genuine("bound of a chunk")

    def changed(*args, **options):
        features[:] = np.nan
        return genuine(*args, **options)

    plant("bound of a chunk", changed)
    first = next(iter(rows._bounded_chunks(range(0, len(features), CHUNK_ROWS))))
    np.testing.assert_array_equal(first.rows, expected[:CHUNK_ROWS])


@pytest.mark.parametrize("row_scaling", ["unit", "clip"])
@pytest.mark.parametrize("private", [True, False])
def test_bounded_rows_pads_with_zeros_even_with_an_intercept(
    features, labels, row_scaling, private
):
    rows = BoundedRows(
        features[:10],
        labels[:10, None],
        row_scaling=row_scaling,
        clip_norm=1.0,
        intercept_scaling=0.5,
        team=Team(),
        private=private,
    )
    (chunk,) = rows.chunks()
    assert not np.asarray(chunk.rows)[10:].any()
    assert np.all(np.asarray(chunk.rows)[:10, -1] > 0.0)


def test_bounded_rows_states_the_norms_or_a_little_more(features, labels):
    rows = BoundedRows(features, labels[:, None], private=True, **OPTIONS)
    for chunk in rows.chunks():
        expected = np.linalg.norm(np.asarray(chunk.rows, np.float64), axis=1)
        expected *= grid_step(1.0)
        assert np.all(chunk.row_norms >= expected)
        np.testing.assert_allclose(chunk.row_norms, expected, rtol=1e-5)


def test_bounded_rows_without_privacy_keeps_raw_rows(features, labels):
    rows = BoundedRows(
        features[:5],
        labels[:5, None],
        row_scaling="clip",
        clip_norm=1e-3,
        intercept_scaling=None,
        team=Team(),
        private=False,
    )
    (chunk,) = rows.chunks()
    np.testing.assert_allclose(np.asarray(chunk.rows)[:5], features[:5], rtol=1e-6)
    assert rows.step is None


def test_bounded_rows_refuses_more_rows_than_the_margin_covers(plant, features):
    plant("most rows of a fit", 100)
    with pytest.raises(ValueError, match="X must have at most 100 rows"):
        BoundedRows(features, np.zeros((len(features), 1)), private=True, **OPTIONS)


@pytest.mark.parametrize("n_rows", [64, 512, CHUNK_ROWS])
@pytest.mark.parametrize("loss", ["softmax", "sigmoid"])
def test_one_more_record_leaves_the_others_contributions_alone(
    features, labels, loss, n_rows
):
    """Also where it needs more padding, or a chunk of its own.

    XLA compiles another shape to another order of operations; a softmax that differs
    in its last bit would move the sum by more than the new record may.
    """
    coef = 3.0 * np.random.default_rng(1).normal(size=(3, 3))

    def gradient(part):
        rows = BoundedRows(features[part], labels[part, None], private=True, **OPTIONS)
        return exact_gradient(rows, coef, loss=loss, clip_norm=1.0).value

    alone = gradient(slice(n_rows, n_rows + 1))
    together = gradient(slice(n_rows + 1))
    np.testing.assert_array_equal(gradient(slice(n_rows)) + alone, together)


@pytest.mark.parametrize("cache_bytes", [0, 2**31])
@pytest.mark.parametrize("block_bytes", [1, 2**22])
def test_bounded_rows_of_a_file_equal_those_in_memory(
    split, labels, cache_bytes, block_bytes, plant
):
    plant("memory for bounded rows", cache_bytes)
    plant("what is read at once", block_bytes)
    lazy = BoundedRows(split.X, labels[:, None], private=True, **OPTIONS)
    memory = BoundedRows(np.asarray(split.X), labels[:, None], private=True, **OPTIONS)
    for _ in range(2):
        np.testing.assert_array_equal(exact_gram(lazy).value, exact_gram(memory).value)


@pytest.mark.parametrize("wide", [False, True])
def test_rows_beside_which_a_copy_has_no_room_are_bounded_at_every_pass(
    features, labels, wide, tmp_path, plant
):
    """A fit to a memory map was charged, and then ended for want of memory."""
    path = tmp_path / "rows.npy"
    np.save(path, np.asarray(features, np.float64 if wide else np.float32))
    mapped = np.load(path, mmap_mode="r")
    kept = BoundedRows(mapped, labels[:, None], private=True, **OPTIONS)
    plant("memory of the machine", lambda: 1.5 * mapped.nbytes)
    plant("what is read at once", 1)
    read = BoundedRows(mapped, labels[:, None], private=True, **OPTIONS)
    for _ in range(2):
        np.testing.assert_array_equal(exact_gram(kept).value, exact_gram(read).value)
    assert kept.chunks() is kept.chunks()
    assert read.chunks() is not read.chunks()


@pytest.mark.parametrize("lazy", [True, False])
@pytest.mark.parametrize("size", [1, 2])
def test_accelerators_hold_each_row_of_their_team_once(
    split, features, labels, monkeypatch, plant, lazy, size
):
    """In calls of eight chunks, bit for bit as a CPU has them."""
    plant("choice of slices", lambda: False)
    X = split.X if lazy else np.tile(features, (9, 1))
    y = labels if lazy else np.tile(labels, 9)

    def chunks(index):
        team = OPTIONS | {"team": Team(index, size)}
        return list(BoundedRows(X, y[:, None], private=True, **team).chunks())

    names = ("rows", "row_norms", "labels")
    expected = [
        gathered(chunks(index), name) for index in range(size) for name in names
    ]
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    found = [chunks(index) for index in range(size)]
    assert {len(chunk.rows) for part in found for chunk in part} == {CALL_ROWS}
    found = [gathered(part, name) for part in found for name in names]
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one[: len(two)], two)
        assert not np.any(one[len(two) :] > 0)


def test_a_thread_that_takes_subnormal_numbers_for_zero_is_refused(features, labels):
    """Of float32 they would be zero, of an array that was float64 before they stay."""
    torch.set_flush_denormal(True)
    try:
        with pytest.raises(PrivacyError, match="subnormal numbers must not be taken"):
            BoundedRows(features, labels[:, None], private=True, **OPTIONS)
    finally:
        torch.set_flush_denormal(False)
    BoundedRows(features, labels[:, None], private=True, **OPTIONS)
