"""A table that a model is saved with makes the features of its fit."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from privfeat import DPFC, PrivatePipeline, PublicColumns, load, save
from privfeat.persistence import load_table

AGE = {"kind": "numeric", "bounds": [0, 100]}
SMOKER = {"kind": "boolean"}
TARGET = {"kind": "category", "categories": ["ill", "well"]}
OWN = {"age": AGE, "smoker": SMOKER}
pytestmark = pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")


def table(**columns):
    return {"columns": {**columns, "outcome": TARGET}, "target": "outcome"}


def rows():
    age = np.arange(40.0) * 2.5
    frame = pd.DataFrame({"age": age, "smoker": age % 2 == 0})
    return frame, np.where(age > 50, "ill", "well")


def classifier(**more):
    return DPFC(epsilon=5, classes=["ill", "well"], n_iter=1, **more)


def plain(columns=OWN):
    X, y = rows()
    return classifier().fit(PublicColumns(columns).fit_transform(X), y)


def pipelines():
    yield make_pipeline(PublicColumns(OWN), classifier())
    steps = [("c", PublicColumns(OWN)), ("m", DPFC(classes=["ill", "well"]))]
    yield PrivatePipeline(steps, epsilon=5)


OTHERS = {
    "order": {"smoker": SMOKER, "age": AGE},
    "names": {"years": AGE, "smoker": SMOKER},
    "bounds": {"age": AGE | {"bounds": [-1000, 100]}, "smoker": SMOKER},
    "kind": {"age": AGE, "smoker": {"kind": "integer", "bounds": [0, 1]}},
    "treatment": {"age": AGE | {"treatment": "raw"}, "smoker": SMOKER},
    "ignored": {"age": AGE, "smoker": {"kind": "ignored"}},
    "indicator": {"age": AGE | {"missing": "indicator"}, "smoker": SMOKER},
    "more": OWN | {"bmi": AGE},
}


@pytest.mark.parametrize("pipeline", [*pipelines()], ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("other", OTHERS)
def test_save_refuses_another_table_than_that_of_the_pipeline(
    pipeline, other, tmp_path
):
    pipeline.fit(*rows())
    with pytest.raises(ValueError, match=r"as PublicColumns of|have the columns"):
        save(pipeline, tmp_path / "m", table=table(**OTHERS[other]))
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("pipeline", [*pipelines()], ids=lambda p: type(p).__name__)
def test_what_is_missing_may_get_a_meaning_later(pipeline, tmp_path):
    save(pipeline.fit(*rows()), tmp_path / "m", table=table(**OWN))
    relaxed = table(age=AGE | {"missing": 50}, smoker=SMOKER | {"missing": "neutral"})
    relaxed["columns"]["who"] = {"kind": "ignored"}
    save(load(tmp_path / "m"), tmp_path / "relaxed", table=relaxed)
    assert load_table(tmp_path / "relaxed") == relaxed


@pytest.mark.parametrize("other", ["ignored", "indicator", "more"])
def test_save_refuses_a_table_of_another_number_of_features(other, tmp_path):
    with pytest.raises(ValueError, match="must make the 2 features that the model"):
        save(plain(), tmp_path / "m", table=table(**OTHERS[other]))


def test_save_of_a_loaded_model_refuses_them_as_well(tmp_path):
    save(plain(), tmp_path / "m", table=table(**OWN))
    with pytest.raises(ValueError, match="may become neutral or a constant"):
        save(load(tmp_path / "m"), tmp_path / "n", table=table(**OTHERS["ignored"]))
    relaxed = table(age=AGE | {"missing": "neutral"}, smoker=SMOKER)
    save(load(tmp_path / "m"), tmp_path / "n", table=relaxed)


@pytest.mark.parametrize("other", ["order", "names"])
def test_save_refuses_a_table_of_features_of_other_names(other, tmp_path):
    X, y = rows()
    clf = classifier().fit(X / [100, 1], y)
    with pytest.raises(ValueError, match=r"\['age', 'smoker'\], in their order"):
        save(clf, tmp_path / "m", table=table(**OTHERS[other]))
    save(clf, tmp_path / "m", table=table(**OWN))


@pytest.mark.slow
def test_table_of_a_network_has_as_many_features(tmp_path):
    pytest.importorskip("jax")
    from privfeat import DPSGDClassifier

    X, y = rows()
    network = DPSGDClassifier(
        model="mlp", classes=["ill", "well"], noise_multiplier=1, n_iter=1,
        expected_batch_size=8, random_state=0,
    )  # fmt: skip
    network.fit(PublicColumns(OWN).fit_transform(X).astype(np.float32), y)
    with pytest.raises(ValueError, match="must make the 2 features that the model"):
        save(network, tmp_path / "m", table=table(**OTHERS["more"]))
    save(network, tmp_path / "m", table=table(**OWN))
