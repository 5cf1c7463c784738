"""A service predicts with one loaded model from several threads."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from privfeat import (
    DPFC,
    DPSGDClassifier,
    PrivatePipeline,
    PublicColumns,
    load,
    save,
)
from privfeat.preprocessing import DPStandardScaler

COLUMNS = {name: {"kind": "numeric", "bounds": [-3, 3]} for name in ("a", "b", "c")}
MODELS = {
    "linear": DPFC(epsilon=5, classes=[0, 1]),
    "pipeline": PrivatePipeline(
        [
            ("columns", PublicColumns(COLUMNS)),
            ("scale", DPStandardScaler(bounds=(-1, 1))),
            ("clf", DPFC(classes=[0, 1])),
        ],
        epsilon=5,
    ),
    "network": DPSGDClassifier(epsilon=5, classes=[0, 1], n_iter=2, model="mlp"),
}


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS)
def test_threads_predict_what_one_alone_does(kind, tmp_path):
    rows = np.random.default_rng(0).normal(size=(60, 3))
    model = MODELS[kind].fit(rows, (rows[:, 0] > 0).astype(int))
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    wanted = model.predict_proba(rows)
    with ThreadPoolExecutor(8) as threads:
        for found in threads.map(loaded.predict_proba, [rows] * 64):
            np.testing.assert_array_equal(found, wanted)
