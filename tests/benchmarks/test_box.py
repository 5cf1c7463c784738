"""The README's table of peers is compared with what their packages define."""

from zipfile import ZipFile

import box
import pytest

VERSIONS = {"opacus": "1.6.0", "jax-privacy": "2.0.0", "diffprivlib": "0.6.6"}
CELLS = box.cells_of(box.README.read_text(encoding="utf-8"), VERSIONS)
SOURCE = (
    "import torch.nn\n"
    """
from sklearn.base import BaseEstimator

class Engine:
    def start(self, secure_mode=False):
        pass
"""
)


@pytest.fixture
def wheel(tmp_path):
    path = tmp_path / "opacus-1.6.0-py3-none-any.whl"
    with ZipFile(path, "w") as archive:
        archive.writestr("opacus/engine.py", SOURCE)
        archive.writestr("opacus/tests/engine_test.py", "class Audit: pass")
        archive.writestr("examples/mnist.py", "import sqlite3")
    return path


def names_for_all():
    filled = [
        (peer, names) for _, by in box.ROWS.values() for peer, names in by.items()
    ]
    return {
        p: {n for peer, names in filled if peer == p for n in names} for p in VERSIONS
    }


def test_names_are_those_of_the_package_alone(wheel):
    assert box.wheel_of("opacus", wheel.parent) == wheel
    found = {"engine", "import torch", "import sklearn", "Engine", "engine.Engine"}
    found |= {f"{place}Engine.start" for place in ("", "engine.")}
    found |= {f"Engine.start({name})" for name in ("self", "secure_mode")}
    assert box.names_of(wheel) == found


@pytest.mark.parametrize("row", box.ROWS)
def test_every_filled_cell_has_names_and_no_other(row):
    assert box.faults_of(row, CELLS, names_for_all()) == []


def test_a_false_cell_is_found():
    names = names_for_all()
    names["jax-privacy"] -= {"CanaryScoreAuditor"}
    names["opacus"] |= {"audit_model"}
    faults = box.faults_of("audits of a fit", CELLS, names)
    assert faults == [
        "audits of a fit, opacus: there are ['audit_model'].",
        "audits of a fit, jax-privacy: ['CanaryScoreAuditor'] are not there.",
    ]
    cells = CELLS | {("audits of a fit", "diffprivlib"): "yes"}
    (*_, fault) = box.faults_of("audits of a fit", cells, names)
    assert fault == "audits of a fit, diffprivlib: the README has 'yes'."


def test_a_table_of_other_versions_is_refused():
    text = box.README.read_text(encoding="utf-8")
    with pytest.raises(ValueError, match=r"opacus 1\.7"):
        box.cells_of(text, VERSIONS | {"opacus": "1.7.0"})
