"""A fitted model, and the folder that it is saved in."""

import hashlib
import json

import numpy as np
import pytest

from privfeat import DPLeastSquares
from privfeat.persistence import model_folder, save

N_FEATURES = 4


def make_data(labels):
    """Return 30 rows near one corner per label."""
    rng = np.random.default_rng(0)
    codes = np.arange(30) % len(labels)
    X = np.eye(N_FEATURES)[codes] + 0.1 * rng.normal(size=(30, N_FEATURES))
    return X, np.asarray(labels)[codes]


def fit(cls=DPLeastSquares, labels=(0, 1, 2), **params):
    X, y = make_data(labels)
    return cls(classes=labels, epsilon=5.0, **params).fit(X, y)


@pytest.fixture(scope="module")
def data():
    """Return noise of three classes."""
    draw = np.random.default_rng(0)
    return draw.normal(size=(24, 4)), np.arange(24) % 3


@pytest.fixture(scope="module")
def fitted():
    return fit()


@pytest.fixture
def folder(fitted, tmp_path):
    save(fitted, tmp_path / "model")
    return tmp_path / "model"


def rewrite(folder, **changes):
    """Change fields of the document and sign it again, as a forger would."""
    document = json.loads((folder / "model.json").read_text()) | changes
    document["sha256"] = model_folder.digest(document)
    (folder / "model.json").write_text(json.dumps(document))


def arrays_file(folder):
    (found,) = folder.glob("arrays-*.npz")
    return found


def rewrite_arrays(folder, **changes):
    """Replace arrays, or drop them where the new one is None, and sign again."""
    with np.load(arrays_file(folder)) as file:
        arrays = {key: file[key] for key in file.files} | changes
    arrays = {key: array for key, array in arrays.items() if array is not None}
    content = model_folder.npz(arrays)
    digest = hashlib.sha256(content).hexdigest()
    arrays_file(folder).unlink()
    (folder / f"arrays-{digest[:16]}.npz").write_bytes(content)
    entry = {"file": f"arrays-{digest[:16]}.npz", "sha256": digest, "objects": []}
    rewrite(folder, arrays=entry)
