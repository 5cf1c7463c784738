import json
import math
from shutil import copytree

import numpy as np
import pytest

from privfeat import DPLeastSquares, ModelFileError, save
from privfeat.metrics import evaluation_of_predictions, private_evaluation
from privfeat.metrics.files import load_evaluation, save_evaluation
from privfeat.persistence.model_folder import digest, read_document
from tests.metrics.drawn import draw


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return the folder of a model, to be copied."""
    clf = DPLeastSquares(epsilon=1.0, classes=[0, 1]).fit(*draw(50))
    folder = tmp_path_factory.mktemp("saved") / "model"
    save(clf, folder)
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    return copytree(saved, tmp_path / "model")


@pytest.fixture(scope="module")
def evaluated(saved, model, tmp_path_factory):
    """Return the folder with an evaluation, to be copied."""
    folder = copytree(saved, tmp_path_factory.mktemp("evaluated") / "model")
    save_evaluation(private_evaluation(model, *draw(300)), folder, test="b.h5")
    return folder


def parts(value):
    """Return all numbers and names of an evaluation."""
    if hasattr(value, "__dict__"):
        return {name: parts(part) for name, part in vars(value).items()}
    return value.tolist() if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("epsilon", [8.0, 1e-3])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_evaluation_is_read_as_it_was_written(folder, model, epsilon, n_classes):
    """Unknown figures as well."""
    X, y = draw(200, n_classes)
    found = evaluation_of_predictions(
        np.abs(X), y, classes=range(n_classes), epsilon=epsilon
    )
    save_evaluation(found, folder, test="b.h5")
    again, test = load_evaluation(folder)
    assert test == "b.h5"
    assert again.privacy == found.privacy
    assert repr(parts(again)) == repr(parts(found))


def test_evaluation_is_not_written_beside_another_model(folder, model):
    found = private_evaluation(model, *draw(50))
    checksum = read_document(folder)["sha256"]
    save(DPLeastSquares(classes=[0, 1]).fit(*draw(50)), folder, overwrite=True)
    with pytest.raises(ModelFileError, match="must hold the model that was evaluated"):
        save_evaluation(found, folder, test="b.h5", checksum=checksum)
    assert load_evaluation(folder) is None


@pytest.mark.parametrize("epsilon", [8.0, 1e-3])
def test_evaluation_of_a_regressor_is_read_as_it_was_written(folder, epsilon):
    x = np.linspace(0, 1, 500)
    found = evaluation_of_predictions(x, x, target_bounds=(0, 1), epsilon=epsilon)
    save_evaluation(found, folder, test="b.h5")
    again, _ = load_evaluation(folder)
    assert repr(parts(again)) == repr(parts(found))
    assert (again.r2.low == -math.inf) == (epsilon == 1e-3)


def test_names_of_classes_are_kept(folder):
    X, y = draw(100)
    names = np.array(["ant", "bee"])
    found = evaluation_of_predictions(np.abs(X), names[y], classes=names)
    save_evaluation(found, folder, test="b.h5")
    assert load_evaluation(folder)[0].classes.tolist() == ["ant", "bee"]


def test_without_an_evaluation_there_is_none(folder, tmp_path):
    assert load_evaluation(folder) is None
    assert load_evaluation(tmp_path / "nowhere") is None


def changed(document, path, value):
    *outer, last = path
    for name in outer:
        document = document[name]
    if value is KeyError:
        del document[last]
    else:
        document[last] = value


DAMAGES = [
    (("format",), "other"),
    (("format_version",), 0),
    (("kind",), "other"),
    (("kind",), "regressor"),
    (("test",), 3),
    (("test",), KeyError),
    (("more",), 1),
    (("figures",), []),
    (("figures", "more"), 1),
    (("figures", "accuracy"), None),
    (("figures", "accuracy"), 0.5),
    (("figures", "accuracy", "low"), 0.99999),
    (("figures", "accuracy", "value"), "0.5"),
    (("figures", "accuracy", "value"), True),
    (("figures", "accuracy", "value"), [0.5]),
    (("figures", "accuracy", "high"), KeyError),
    (("figures", "recall", "value"), [0.5]),
    (("figures", "confusion", "value"), [0.5, 0.5]),
    (("figures", "classes"), [0]),
    (("figures", "classes"), [None, {}]),
    (("figures", "confidence"), None),
    (("figures", "roc"), []),
    (("figures", "roc", "thresholds"), 3),
    (("figures", "roc", "thresholds", 0), None),
    (("figures", "reliability", "bin_edges"), [0, 1]),
    (("privacy",), {}),
    (("privacy", "epsilon"), 0.1),
    (("privacy", "releases", 0, "noise_multiplier"), 0.1),
]


@pytest.mark.parametrize(("path", "value"), DAMAGES)
def test_what_save_never_writes_is_refused(evaluated, tmp_path, path, value):
    """With a checksum that matches."""
    folder = copytree(evaluated, tmp_path / "model")
    file = folder / "evaluation.json"
    document = json.loads(file.read_text())
    changed(document, path, value)
    document["sha256"] = digest(document)
    file.write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match="damaged"):
        load_evaluation(folder)


@pytest.mark.parametrize("content", ["", "[]", "{}", "[" * 10**5, '{"format": NaN}'])
def test_what_is_no_evaluation_is_refused(folder, content):
    (folder / "evaluation.json").write_text(content)
    with pytest.raises(ModelFileError, match="damaged"):
        load_evaluation(folder)


def test_checksum_shows_damage(folder, model):
    file = save_evaluation(private_evaluation(model, *draw(99)), folder, test="b.h5")
    file.write_text(file.read_text().replace("b.h5", "c.h5"))
    with pytest.raises(ModelFileError, match="does not match its checksum"):
        load_evaluation(folder)


def test_a_newer_format_asks_for_a_newer_privfeat(folder, model):
    file = save_evaluation(private_evaluation(model, *draw(99)), folder, test="b.h5")
    document = json.loads(file.read_text()) | {"format_version": 2}
    file.write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match="Upgrade privfeat"):
        load_evaluation(folder)


def test_an_evaluation_needs_a_model(tmp_path, model):
    with pytest.raises(ModelFileError, match="not a privfeat model"):
        save_evaluation(private_evaluation(model, *draw(99)), tmp_path, test="b.h5")
