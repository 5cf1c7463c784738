"""No traceback and no warning shows data, whatever others raise while they read it."""

import re
import traceback
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin

from privfeat import (
    TemperatureScaling,
)
from privfeat._messages import array_of, without_data
from privfeat.data import LazyFeatures, open_features, write_features
from privfeat.networks.images.records import as_records
from tests.pitfalls.conftest import EDGES, SECRET, N, of_each_edge

NUMBER = 815.0815
MARKS = (SECRET, "815.08", "0815")


class OddError(Exception):
    """An exception of the user's own."""


def shouting(kind):
    """Return an object that shows what it holds in an error of this kind."""

    class Shouting:
        def fail(self, *args, **kwargs):
            warnings.warn(f"saw {SECRET}", UserWarning, stacklevel=1)
            try:
                raise KeyError(SECRET)
            except KeyError as cause:
                error = kind(f"cannot read {SECRET}, {NUMBER}")
                error.add_note(f"the record of {SECRET}")
                raise error from cause

        __array__ = __len__ = __iter__ = __float__ = __eq__ = __lt__ = fail
        __hash__ = object.__hash__

        def __repr__(self):
            return SECRET

    return Shouting()


class Secretive:
    """Answers every question about itself with what it holds."""

    def __getattr__(self, name):
        raise OddError(SECRET)


class Name(str):
    """A string that cannot be compared."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __lt__(self, other):
        raise OddError(SECRET)

    __eq__ = __gt__ = __lt__


KINDS = [AttributeError, KeyError, MemoryError, OSError, OddError, OverflowError]
KINDS += [RuntimeError, TypeError, UnicodeError, UserWarning, ValueError, StopIteration]
LABELS = {f"{SECRET}-{i}": i % 2 for i in range(N)}
ODD = {
    "values": LABELS.values(),
    "dict": LABELS,
    "items": LABELS.items(),
    "set": set(LABELS),
    "generator": (name for name in LABELS),
    "strings": list(LABELS),
    "one string": SECRET,
    "mixed": [SECRET, 1, None, 2.0, (SECRET,), b"x"],
    "ragged": [[SECRET], [1, 2], [NUMBER], [], [1], [2]],
    "numbers of strings": np.array([[SECRET, NUMBER]] * N),
    "records": np.array([(SECRET, NUMBER)] * N, [(SECRET, "U20"), ("b", float)]),
    "objects": np.full(N, None, object),
    "frame": pd.DataFrame({"a": [SECRET] * N, "b": [{SECRET: NUMBER}] * N}),
    "category": pd.Series([SECRET, "b", "c"] * 2, dtype="category"),
    "nullable": pd.Series([1, None, NUMBER] * 2, dtype="Float64"),
    "dates": pd.Series(pd.to_datetime(["2008-08-15"] * N)),
    "sparse": csr_array(np.full((N, 2), NUMBER)),
    "complex": np.full((N, 2), NUMBER + 1j),
    "short": np.full((N - 1, 2), NUMBER),
    "deep": np.full((N, 1, 1, 1, 1), NUMBER),
    "masked": np.ma.masked_array(np.full((N, 2), NUMBER), True),
    "none": None,
    "attributes": Secretive(),
    "types": type("Table", (), {"dtypes": property(lambda self: Secretive().x)})(),
    "names": [Name(f"{SECRET}-{i}") for i in range(N)],
    "an array of its own": np.arange(N).view(
        type("Odd", (np.ndarray,), {"__array_ufunc__": lambda *_, **__: Secretive().x})
    ),
    **{f"raises {kind.__name__}": shouting(kind) for kind in KINDS},
    **{f"rows raise {kind.__name__}": [shouting(kind)] * N for kind in KINDS},
}

for place in range(N):
    ODD["objects"][place] = shouting(OddError)


def said_by(call):
    """Return the traceback and the warnings of a call, without lines of source."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        text = ""
        try:
            call()
        except Exception as error:  # noqa: BLE001 - its text is what is tested
            lines = traceback.format_exception(error)
            text = "".join(line for line in lines if not line.startswith("  File"))
            text += f"{error.__cause__} {error.__context__}"
    return text + "".join(str(one.message) for one in caught)


@of_each_edge()
def test_no_edge_shows_what_it_was_given(edges, edge):
    assert edges.keys() == set(EDGES)
    for name, odd in ODD.items():
        said = said_by(lambda odd=odd: edges[edge](odd))
        shown = [mark for mark in MARKS if mark in said]
        assert not shown, (edge, name, said[-400:])


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_of_any_type_becomes_ours(kind):
    with pytest.raises((TypeError, ValueError, MemoryError)) as caught:
        array_of(shouting(kind))
    error = caught.value
    assert error.__cause__ is error.__context__ is None
    assert not getattr(error, "__notes__", [])
    assert type(error) in (TypeError, ValueError, MemoryError)


def test_an_error_without_words_becomes_ours():
    class Mute(TypeError):
        def __str__(self):
            raise KeyError(SECRET)

    def fail():
        raise Mute

    with pytest.raises(TypeError, match="kept back") as caught:
        without_data(fail)
    assert type(caught.value) is TypeError
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_words_that_are_known_do_not_open_the_door():
    def fail():
        raise ValueError(
            f"X has 3 features, but DPFC is expecting 4 features as input. {SECRET}"
        )

    with pytest.raises(ValueError, match="kept back"):
        without_data(fail)
    with pytest.raises(KeyboardInterrupt):
        without_data(lambda: (_ for _ in ()).throw(KeyboardInterrupt))


def test_a_classifier_of_others_shows_nothing_to_temperature_scaling():
    class Odd(ClassifierMixin, BaseEstimator):
        classes_ = np.array([0, 1])

        def fit(self, X, y):
            return self

        def __sklearn_is_fitted__(self):
            return True

        def predict_proba(self, X):
            raise RuntimeError(f"bad rows {X!r} of {SECRET}")

    X, y = np.full((N, 2), NUMBER), np.array([0, 1] * 3)
    said = said_by(lambda: TemperatureScaling(Odd()).fit(X, y))
    assert "kept back" in said
    assert not any(mark in said for mark in MARKS)


def test_memory_that_is_not_there_shows_no_number_of_records(tmp_path):
    """NumPy says which shape it could not allocate."""
    many = np.broadcast_to(np.float64(1.0), (815_0815, 2**20, 2**8))
    rows = LazyFeatures(
        str(tmp_path / "x.h5"), "train/features", many.shape[:2], np.dtype("f8")
    )
    rows.shape = many.shape[0], 2**36
    for call in (lambda: as_records(many), lambda: rows[:], lambda: rows[::2]):
        said = said_by(call)
        assert "must fit into memory" in said
        assert "815" not in said


@pytest.mark.parametrize("cut", [100, 3000])
def test_a_damaged_file_shows_no_size(tmp_path, cut):
    """HDF5 says how long a truncated file is and was, which tells how many rows."""
    path = tmp_path / "features.h5"
    write_features(path, {"train": (np.ones((400, 3)), np.zeros(400, int))})
    content = path.read_bytes()
    path.write_bytes(content[:cut])
    said = said_by(lambda: open_features(path))
    assert "truncated" in said
    assert not {"eof", str(cut), str(len(content))} & {*re.findall(r"\w+", said)}
