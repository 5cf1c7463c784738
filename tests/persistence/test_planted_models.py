"""Models that ``save`` never wrote, with checksums that fit, are refused."""

import hashlib
import io
import json
import shutil
import zipfile

import numpy as np
import pytest

from privfeat import DPAdamLinear, DPLeastSquares, DPSGDClassifier, load, save
from privfeat._encoding import decode
from privfeat.persistence import ModelFileError, load_statement, model_folder
from privfeat.persistence.model_checks import agrees_with_its_releases
from tests.networks.tiny import TINY

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


@pytest.fixture(scope="module")
def models(data):
    """Return fits whose statements are made in all ways but by a selection."""
    return {
        "exact": DPLeastSquares(epsilon=1.0, classes=range(3)).fit(*data),
        "sampled": DPAdamLinear(
            noise_multiplier=4.0,  # from an epsilon it would be searched, for seconds
            classes=range(3),
            sampling_prob=0.5,
            n_iter=3,
            accounting="pld",
        ).fit(*data),
        "network": DPSGDClassifier(**TINY | {"random_state": None}).fit(*data),
    }


@pytest.fixture(params=["exact", "sampled", "network"])
def folder(request, models, tmp_path):
    save(models[request.param], tmp_path / "model")
    return tmp_path / "model"


def plant(folder, change):
    document = json.loads((folder / "model.json").read_text())
    change(document)
    document["sha256"] = model_folder.digest(document)
    (folder / "model.json").write_text(json.dumps(document))


def nested(depth):
    value = 1
    for _ in range(depth):
        value = {"tuple": [value]}
    return value


PARAMETERS = {
    "seed": {"random_state": 0},
    "ledger": {"ledger": "x"},
    "checkpoints": {"checkpoint_dir": "/tmp"},
    "weights": {"weights": "x.safetensors"},
    "unknown": {"no_such": 1},
    "deep": {"classes": nested(400)},
    "objects": {"classes": {"array": ["O", [1, 2]]}},
    "void": {"classes": {"array": ["V8", [1, 2]]}},
    "wide": {"classes": {"array": ["<U99999999", ["a"]]}},
    "huge range": {"classes": {"range": [0, 10**18, 1]}},
    "float range": {"classes": {"range": [0, True, 1]}},
    "odd float": {"epsilon": {"float": "1.0"}},
    "two kinds": {"classes": {"tuple": [1], "range": [0, 1, 1]}},
    "unhashable": {"classes": {"dict": [[[1], 2]]}},
    "too large": {"classes": {"array": ["|u1", [300]]}},
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_load_refuses_parameters_that_are_never_written(folder, name):
    plant(folder, lambda document: document["params"].update(PARAMETERS[name]))
    with pytest.raises(ModelFileError):
        load(folder)


def stated(**fields):
    return lambda document: document["privacy"].update(fields)


def released(**fields):
    return lambda document: document["privacy"]["releases"][0].update(fields)


DOCUMENTS = {
    "smaller epsilon": stated(epsilon=0.01),
    "smaller delta": stated(delta=1e-9),
    "less noise": released(noise_multiplier=1e-3),
    "less noise than stated": released(noise_stddev=1e-6),
    "more releases": released(count=10**6),
    "other statement": lambda document: document.update(privacy={}),
    "boolean": lambda document: document["fitted"].update(n_iter_=True),
    "negative": lambda document: document["fitted"].update(n_iter_=-1),
    "unknown attribute": lambda document: document["fitted"].update(predict=1),
    "list": lambda document: document.update(fitted=[1]),
    "unknown field": lambda document: document.update(more=1),
    "names": lambda document: document.update(class_names=["a", "b", 3]),
    "few names": lambda document: document.update(class_names=["a"]),
    "objects": lambda document: document["arrays"].update(objects=3),
    "unknown objects": lambda document: document["arrays"].update(objects=["zz"]),
    "numbers as objects": lambda d: d["arrays"].update(objects=["classes_"]),
    "another file": lambda document: document["arrays"].update(file="../x.npz"),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_load_refuses_documents_that_are_never_written(folder, name):
    plant(folder, DOCUMENTS[name])
    with pytest.raises(ModelFileError):
        load(folder)


@pytest.mark.parametrize("name", ["smaller epsilon", "less noise", "more releases"])
def test_statements_are_held_against_their_releases(folder, name):
    plant(folder, DOCUMENTS[name])
    with pytest.raises(ModelFileError, match="promises more than its releases give"):
        load_statement(folder)


def test_documents_that_are_too_deep_are_refused(folder):
    text = (folder / "model.json").read_text()
    deep = text.replace('"params": {', '"params": {"x": ' + "[" * 900 + "]" * 900 + ",")
    (folder / "model.json").write_text(deep)
    with pytest.raises(ModelFileError):
        load(folder)


def arrays_of(folder, **changes):
    document = json.loads((folder / "model.json").read_text())
    arrays = model_folder.read_arrays(folder, document["arrays"])
    fields = {k: v for k, v in document.items() if k not in ("sha256", "arrays")}
    model_folder.write_model(folder, fields, arrays | changes, [])


@pytest.mark.parametrize(
    "changes",
    [
        {"classes_": np.array([0, 0, 1])},
        {"classes_": np.array([[0, 1, 2]])},
        {"classes_": np.array([0.0, np.nan, 1.0])},
        {"coef_": np.full((3, 4), np.nan)},
        {"coef_": np.full((3, 4), "x")},
        {"coef_": np.zeros((3, 5))},
        {"coef_": np.zeros((3, 4), ">f8")},
        {"coef_": np.zeros((3, 4), np.longdouble)},
        {"privacy_": np.zeros(3)},
    ],
)
def test_load_refuses_arrays_that_are_never_written(models, tmp_path, changes):
    save(models["exact"], tmp_path / "model")
    load(tmp_path / "model")
    arrays_of(tmp_path / "model", **changes)
    with pytest.raises(ModelFileError):
        load(tmp_path / "model")


def archive_of_another_kind(kind):
    """Return what NumPy refuses, each kind with another exception."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        with archive.open("coef_.npy", "w") as file:
            fields = {"descr": "<f8", "fortran_order": False, "shape": (10**13,)}
            np.lib.format.write_array_header_1_0(file, fields)
    content = bytearray(buffer.getvalue())
    local, central = content.find(b"PK\x03\x04"), content.find(b"PK\x01\x02")
    if kind == "password":
        content[local + 6] |= 1
        content[central + 8] |= 1
    if kind == "method":
        content[central + 10] = 99
    return b"" if kind == "empty" else bytes(content)


@pytest.mark.parametrize("kind", ["password", "method", "empty", "beyond memory"])
def test_load_refuses_archives_that_are_never_written(models, tmp_path, kind):
    save(models["exact"], tmp_path / "model")
    content = archive_of_another_kind(kind)
    sha256 = hashlib.sha256(content).hexdigest()
    name = f"arrays-{sha256[:16]}.npz"
    (tmp_path / "model" / name).write_bytes(content)
    entry = {"file": name, "sha256": sha256}
    plant(tmp_path / "model", lambda document: document["arrays"].update(entry))
    with pytest.raises(ModelFileError, match="does not hold arrays"):
        load(tmp_path / "model")


@pytest.fixture(scope="module")
def saved_network(models, tmp_path_factory):
    """Return the folder of a network, which can be loaded from there."""
    folder = tmp_path_factory.mktemp("saved") / "model"
    save(models["network"], folder)
    load(folder)
    return folder


@pytest.mark.parametrize(
    ("params", "arrays"),
    [
        ({}, {"input_shape_": np.array([5])}),
        ({}, {"input_shape_": np.array([-4])}),
        ({}, {"input_shape_": np.array([[4]])}),
        ({}, {"classes_": np.arange(2)}),
        ({}, {"parameters_/more": np.zeros(3)}),
        ({"model": "simpleVGG-9(1)-9999999"}, {}),
        ({"model": "wrn_16_4"}, {}),
        ({"model": None}, {}),
    ],
)
def test_load_refuses_networks_that_are_not_those_named(
    saved_network, tmp_path, params, arrays
):
    folder = tmp_path / "model"
    shutil.copytree(saved_network, folder)
    arrays_of(folder, **arrays)
    plant(folder, lambda document: document["params"].update(params))
    with pytest.raises(ModelFileError):
        load(folder)


def test_statements_of_fits_agree(models):
    for model in models.values():
        assert agrees_with_its_releases(model.privacy_)


def test_what_is_decoded_is_what_was_encoded():
    for odd in ({"float": "nan "}, {"tuple": "ab"}, {"range": [0, 3, 1.0]}, {}):
        with pytest.raises((TypeError, ValueError)):
            decode(odd)


def test_a_network_without_a_name_is_refused(models, tmp_path):
    save(models["network"], tmp_path / "model")
    plant(tmp_path / "model", lambda document: document["params"].update(model=None))
    with pytest.raises(ModelFileError, match="its model is no name"):
        load(tmp_path / "model")
