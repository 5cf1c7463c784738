"""One model of each kind that can be saved, as this version writes it.

    python -m tests.old_models

writes them into ``tests/golden/models-v1/``, each beside rows and what it makes of
them; and a statement and an evaluation. What is there is kept: it was written by the
version that its ``model.json`` names, and later ones must read it.
"""

import warnings
from pathlib import Path

import numpy as np

from privfeat import (
    DPFC,
    DPAdamLinear,
    DPLeastSquares,
    DPLeastSquaresRegressor,
    DPNearestMean,
    DPNewton,
    DPSGDClassifier,
    DPSGDRegressor,
    PrivatePipeline,
    PublicColumns,
    save,
)
from privfeat.metrics import evaluation_of_predictions
from privfeat.metrics.files import save_evaluation
from privfeat.persistence.saved_models import HOMES
from privfeat.preprocessing import DPPCA, DPClassCounts, DPQuantiles, DPStandardScaler

GOLDEN = Path(__file__).parent / "golden"
MODELS = GOLDEN / "models-v1"
NAMES = [name for names in HOMES.values() for name in names]
SEEDED = {"random_state": 0}
NETWORK = SEEDED | {
    "model": "mlp",
    "noise_multiplier": 1.0,
    "n_iter": 2,
    "expected_batch_size": 8,
}
COLUMNS = {
    name: {"kind": "numeric", "bounds": [0, 9], "missing": "neutral"} for name in "abc"
}


def data():
    """Return rows of three columns, their classes, and images with two."""
    draw = np.random.default_rng(0)
    X = draw.uniform(0, 9, (60, 3))
    images = draw.integers(0, 256, (24, 4, 4, 1), np.uint8)
    return X, np.argmax(X, axis=1), images, np.arange(24) % 2


def made(name):
    """Return a model of this kind, fitted with a seed, and rows for it."""
    X, y, images, labels = data()
    classes = {"classes": [0, 1, 2]}
    linear = (DPFC, DPAdamLinear, DPLeastSquares, DPNearestMean, DPNewton)
    for cls in linear:
        if cls.__name__ == name:
            return cls(**SEEDED, **classes).fit(X, y), X[:5]
    if name == "DPLeastSquaresRegressor":
        bounds = {"target_bounds": (0, 9)}
        return DPLeastSquaresRegressor(**SEEDED, **bounds).fit(X, X[:, 0]), X[:5]
    if name == "DPSGDClassifier":
        clf = DPSGDClassifier(**NETWORK, classes=[0, 1])
        return clf.fit(images, labels), images[:5]
    if name == "DPSGDRegressor":
        return DPSGDRegressor(**NETWORK).fit(images, labels - 0.5), images[:5]
    if name == "PrivatePipeline":
        steps = [
            ("columns", PublicColumns(COLUMNS)),
            ("scale", DPStandardScaler(bounds=(-1, 1))),
            ("clf", DPFC(**classes)),
        ]
        return PrivatePipeline(steps, **SEEDED).fit(X, y), X[:5]
    if name == "DPClassCounts":
        return DPClassCounts(**SEEDED, **classes).fit(X, y), None
    steps = {
        "DPPCA": lambda: DPPCA(n_components=2, **SEEDED),
        "DPQuantiles": lambda: DPQuantiles(bounds=(0, 9), **SEEDED),
        "DPStandardScaler": lambda: DPStandardScaler(bounds=(0, 9), **SEEDED),
    }
    return steps[name]().fit(X), X[:5]


def results(model, rows):
    """Return what a model makes of rows, or of none."""
    for method in ("predict_proba", "predict", "transform"):
        if rows is not None and hasattr(model, method):
            return np.asarray(getattr(model, method)(rows))
    if rows is None:
        return model.counts_
    return model.quantiles_


def write():
    """Write what is not there."""
    for name in NAMES:
        folder = MODELS / name
        if folder.exists():
            continue
        model, rows = made(name)
        save(model, folder)
        then = {"results": results(model, rows)}
        then |= {} if rows is None else {"rows": rows}
        np.savez_compressed(folder / "then.npz", **then)
        if name == "DPFC":
            text = model.privacy_.to_json()
            (GOLDEN / "statement-v1.json").write_text(text + "\n", encoding="utf-8")
            X, y, *_ = data()
            found = evaluation_of_predictions(
                model.predict_proba(X), y, classes=[0, 1, 2], **SEEDED
            )
            save_evaluation(found, folder, test="others.csv")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    write()
