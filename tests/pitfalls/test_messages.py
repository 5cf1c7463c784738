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
    DPFC,
    DPLeastSquares,
    DPLeastSquaresRegressor,
    DPRandomizedSearch,
    DPSGDClassifier,
    DPSGDRegressor,
    HashKFold,
    TemperatureScaling,
    audit,
)
from privfeat._messages import array_of, without_data
from privfeat.analysis.calibration import calibration_report
from privfeat.data import FeatureWriter, LazyFeatures, open_features, write_features
from privfeat.networks.images.records import as_records
from tests.networks.tiny import TINY
from tests.pitfalls.conftest import SECRET

NUMBER = 815.0815
MARKS = (SECRET, "815.08", "0815")
N = 6


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


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    """Return every function that private data enters by, of X or y or groups."""
    path = tmp_path_factory.mktemp("files") / "features.h5"

    def written(*split):
        write_features(path, {"train": split}, overwrite=True)

    def appended(features, labels, groups=None):
        with FeatureWriter(path, n_features=2, overwrite=True) as writer:
            writer.append("train", features, labels, groups=groups)

    X = np.arange(2.0 * N).reshape(N, 2)
    y = np.array([0, 1] * (N // 2))
    linear = {"epsilon": 1.0, "classes": [0, 1]}
    small = TINY | {"classes": [0, 1], "n_iter": 1, "expected_batch_size": None}
    numbers = {name: small[name] for name in small if name != "classes"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = DPFC(**linear, n_iter=1).fit(X, y)
        named = DPLeastSquares(epsilon=1.0, classes=["a", "b"])
        regressor = DPLeastSquaresRegressor(epsilon=1.0, target_bounds=(0, 1)).fit(X, y)
        network = DPSGDClassifier(**small).fit(X, y)
    search = DPRandomizedSearch(DPFC(**linear, n_iter=1), {"clip_norm": [1.0]})
    return {
        "fit X": lambda odd: DPFC(**linear, n_iter=1).fit(odd, y),
        "fit y": lambda odd: DPFC(**linear, n_iter=1).fit(X, odd),
        "fit y of strings": lambda odd: named.fit(X, odd),
        "fit y without classes": lambda odd: DPLeastSquares(epsilon=1.0).fit(X, odd),
        "fit groups": lambda odd: DPFC(**linear, n_iter=1, max_group_size=1).fit(
            X, y, groups=odd
        ),
        "predict": fitted.predict,
        "score y": lambda odd: fitted.score(X, odd),
        "regressor y": lambda odd: DPLeastSquaresRegressor(epsilon=1.0).fit(X, odd),
        "regressor score": lambda odd: regressor.score(X, odd),
        "network X": lambda odd: DPSGDClassifier(**small).fit(odd, y),
        "network y": lambda odd: DPSGDClassifier(**small).fit(X, odd),
        "network groups": lambda odd: DPSGDClassifier(**small, max_group_size=1).fit(
            X, y, groups=odd
        ),
        "network predict": network.predict,
        "network score": lambda odd: network.score(X, odd),
        "network regressor y": lambda odd: DPSGDRegressor(**numbers).fit(X, odd),
        "temperature X": lambda odd: TemperatureScaling(fitted).fit(odd, y),
        "temperature y": lambda odd: TemperatureScaling(fitted).fit(X, odd),
        "search X": lambda odd: search.fit(odd, y),
        "search y": lambda odd: search.fit(X, odd),
        "replay X": lambda odd: audit.replay(fitted, odd, y, record=0),
        "replay y": lambda odd: audit.replay(fitted, X, odd, record=0),
        "write X": lambda odd: written(odd, y),
        "write y": lambda odd: written(X, odd),
        "write groups": lambda odd: written(X, y, odd),
        "append X": lambda odd: appended(odd, y),
        "append y": lambda odd: appended(X, odd),
        "append groups": lambda odd: appended(X, y, odd),
        "calibration": lambda odd: calibration_report(odd, np.full((N, 2), 0.5)),
        "folds X": lambda odd: [*HashKFold(2).split(odd)],
        "folds groups": lambda odd: [*HashKFold(2).split(X, groups=odd)],
    }


EDGES = """fit X|fit y|fit y of strings|fit y without classes|fit groups|predict|score y
regressor y|regressor score|network X|network y|network groups|network predict
network score|network regressor y|temperature X|temperature y|search X|search y
replay X|replay y|calibration|folds X|folds groups|write X|write y|write groups
append X|append y|append groups""".replace("\n", "|").split("|")
SLOW = {"network y", "network groups", "network score", "network regressor y"}


@pytest.mark.parametrize(
    "edge",
    [pytest.param(e, marks=pytest.mark.slow if e in SLOW else ()) for e in EDGES],
)
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
