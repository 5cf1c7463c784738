"""Folders that are no model, or a damaged one, are refused."""

import hashlib
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from privfeat.persistence import ModelFileError, load, load_statement
from tests.persistence.conftest import arrays_file, rewrite, rewrite_arrays


@pytest.mark.parametrize("name", ["missing", "file"])
def test_load_refuses_what_is_no_folder(tmp_path, name):
    (tmp_path / "file").write_text("x")
    with pytest.raises(ModelFileError, match="is not a privfeat model"):
        load(tmp_path / name)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[]", "has another format"),
        (b'{"format": "other"}', "has another format"),
        (b'{"format": "privfeat-model"}', "does not match its checksum"),
    ],
)
def test_load_refuses_a_foreign_document(folder, text, message):
    (folder / "model.json").write_bytes(text)
    with pytest.raises(ModelFileError, match=message):
        load(folder)


def test_load_refuses_a_newer_format(folder):
    rewrite(folder, format_version=2, estimator={"of": "the future"})
    with pytest.raises(ModelFileError, match=r"format version 2.*Upgrade privfeat"):
        load(folder)


@pytest.mark.parametrize("version", [0, -1, "1", None, 1.5])
def test_load_refuses_an_impossible_version(folder, version):
    rewrite(folder, format_version=version)
    with pytest.raises(ModelFileError, match="damaged"):
        load(folder)


def test_load_refuses_a_changed_statement(folder):
    text = (folder / "model.json").read_text()
    changed = text.replace('"epsilon": 5.0', '"epsilon": 0.1')
    assert changed != text
    (folder / "model.json").write_text(changed)
    for read in (load, load_statement):
        with pytest.raises(ModelFileError, match="does not match its checksum"):
            read(folder)


@pytest.mark.parametrize("position", [0, 100, -1])
def test_load_refuses_a_flipped_bit_in_the_arrays(folder, position):
    content = bytearray(arrays_file(folder).read_bytes())
    content[position] ^= 1
    arrays_file(folder).write_bytes(content)
    with pytest.raises(ModelFileError, match="does not match its checksum"):
        load(folder)


def test_load_refuses_missing_arrays(folder):
    arrays_file(folder).unlink()
    with pytest.raises(ModelFileError, match="is missing"):
        load(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"estimator": "LogisticRegression"}, "not one of DPFC"),
        ({"estimator": None}, "lacks a field"),
        ({"params": []}, "lacks a field"),
        ({"params": {"no_such": 1}}, "the parameters do not fit"),
        ({"params": {"classes": {"object": "os.system"}}}, "the parameters do not"),
        ({"fitted": {}}, "fitted attributes"),
        ({"fitted": {"n_features_in_": 3}}, "shapes of its arrays"),
        ({"fitted": {"n_features_in_": 4, "predict": 1}}, "fitted attributes"),
        ({"privacy": {}}, "no privacy statement"),
        ({"arrays": {"file": "../secret.npz", "sha256": "0"}}, "no file of arrays"),
        ({"arrays": {}}, "no file of arrays"),
        ({"features": []}, "a field of another type"),
    ],
)
def test_load_refuses_a_forged_document(folder, changes, message):
    rewrite(folder, **changes)
    with pytest.raises(ModelFileError, match=message):
        load(folder)


def test_load_refuses_a_model_from_before_there_was_a_center(folder):
    """It would silently predict with another model."""
    rewrite_arrays(folder, center_=None)
    with pytest.raises(ModelFileError, match="fitted attributes"):
        load(folder)


@pytest.mark.parametrize("shape", [(), (1,), (3,), (4, 1), (1, 4)])
def test_load_refuses_a_center_of_another_shape(folder, shape):
    """Some of them would broadcast."""
    rewrite_arrays(folder, center_=np.zeros(shape))
    with pytest.raises(ModelFileError, match="shapes of its arrays"):
        load(folder)


@pytest.mark.parametrize("shape", [(), (1,), (99,), (3, 1)])
def test_load_refuses_class_weights_of_another_shape(folder, shape):
    rewrite_arrays(folder, class_weight_=np.ones(shape))
    with pytest.raises(ModelFileError, match="not one for each class"):
        load(folder)


class Payload:
    """Makes a file when unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_load_never_unpickles(folder, tmp_path):
    bait = tmp_path / "ran"
    forged = {"classes_": np.array([Payload(bait)], dtype=object)}
    np.savez(folder / "forged.npz", **forged)
    with zipfile.ZipFile(folder / "forged.npz") as archive:
        pickle.loads(archive.read("classes_.npy")[128:])
    assert bait.exists()  # the bait works
    bait.unlink()

    content = (folder / "forged.npz").read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    name = f"arrays-{digest[:16]}.npz"
    (folder / name).write_bytes(content)
    rewrite(folder, arrays={"file": name, "sha256": digest, "objects": []})
    with pytest.raises(ModelFileError, match="does not hold arrays"):
        load(folder)
    assert not bait.exists()
