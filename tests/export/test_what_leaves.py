"""What leaves for other programs is listed in docs/what-leaves.md."""

import numpy as np
import pytest

from privfeat import DPFC, DPLeastSquaresRegressor, TemperatureScaling, save
from privfeat.export import export_onnx, export_safetensors, push_to_hub
from tests.cli.test_what_leaves import unlisted
from tests.export.conftest import NUMBER, fitted, write_card

FILES = "model.onnx, model.safetensors"


def test_metadata_of_onnx_holds_what_is_listed(fit, rows, tmp_path):
    onnx = pytest.importorskip("onnx", reason="pip install 'privfeat[onnx]'")
    scaled = TemperatureScaling(fit(DPFC), epsilon=1.0)
    for model in (scaled.fit(rows, np.arange(len(rows)) % 3), fitted(NUMBER)):
        names = [str(label) for label in model.classes_]
        export_onnx(model, tmp_path / "m.onnx", class_names=names)
        found = {p.key for p in onnx.load(tmp_path / "m.onnx").metadata_props}
        assert not unlisted(FILES, found)


def test_metadata_of_safetensors_holds_what_is_listed(fit, rows, tmp_path):
    library = pytest.importorskip(
        "safetensors", reason="pip install 'privfeat[safetensors]'"
    )
    number = DPLeastSquaresRegressor(epsilon=1.0, target_bounds=(-9, 9))
    for model in (fit(DPFC), number.fit(rows, np.clip(rows[:, 0], -8, 8))):
        export_safetensors(model, tmp_path / "m.safetensors")
        with library.safe_open(tmp_path / "m.safetensors", framework="np") as file:
            assert not unlisted(FILES, file.metadata())
            assert not unlisted("arrays", file.keys())


def test_upload_holds_what_is_listed(fit, tmp_path):
    pytest.importorskip("huggingface_hub", reason="pip install 'privfeat[hub]'")
    save(fit(DPFC), tmp_path / "model")
    write_card(tmp_path / "card.md", tmp_path / "model")
    upload = push_to_hub(
        tmp_path / "model", "me/model", card=tmp_path / "card.md", dry_run=True
    )
    assert not unlisted("hub", upload.files)
