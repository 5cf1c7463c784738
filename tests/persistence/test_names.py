"""Names of classes stand in the order of the classes, or are refused."""

import numpy as np
import pandas as pd
import pytest

from privfeat import export, save
from privfeat.data import FeatureWriter, open_features, write_features
from privfeat.persistence import load_class_names
from privfeat.persistence.saving import written_before
from tests.persistence.conftest import fit

ROWS = np.ones((3, 4), np.float32)
LABELS = np.arange(3)
GIVEN = {
    "mapping": {"ill": 1, "well": 0, "dead": 2},
    "set": {"ill", "well", "dead"},
    "keys": {"ill": 1, "well": 0, "dead": 2}.keys(),
    "series": pd.Series(["ill", "well", "dead"], index=[1, 0, 2]),
    "text": "abc",
    "table": np.array([["ill", "well", "dead"]]),
}


def finish(path, names):
    with FeatureWriter(path / "w.h5", n_features=4) as writer:
        writer.append("train", ROWS, LABELS)
        writer.finish(class_names=names)


WAYS = {
    "save": lambda path, names: save(fit(), path / "m", class_names=names),
    "before": lambda path, names: written_before(fit(), names),
    "features": lambda path, names: write_features(
        path / "f.h5", {"train": (ROWS, LABELS)}, class_names=names
    ),
    "writer": finish,
    "onnx": lambda path, names: export.export_onnx(
        fit(), path / "m.onnx", class_names=names
    ),
    "safetensors": lambda path, names: export.export_safetensors(
        fit(), path / "m.safetensors", class_names=names
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("given", GIVEN)
def test_names_without_the_order_of_the_classes_are_refused(tmp_path, way, given):
    if way in ("onnx", "safetensors"):
        pytest.importorskip(way)
    with pytest.raises(TypeError, match="class_names must be a list, a tuple or an"):
        WAYS[way](tmp_path, GIVEN[given])
    left = {path.suffix for path in tmp_path.iterdir()}
    assert left <= {".lock", ".partial"}  # of a file that can be resumed


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_names_in_order_are_kept(tmp_path, kind):
    names = kind(["well", "ill", "dead"])
    save(fit(), tmp_path / "m", class_names=names)
    assert load_class_names(tmp_path / "m") == ["well", "ill", "dead"]
    WAYS["features"](tmp_path, names)
    assert open_features(tmp_path / "f.h5").class_names == ("well", "ill", "dead")
