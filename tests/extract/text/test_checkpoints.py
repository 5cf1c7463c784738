import json
import pickle
import shutil
import sys
from pathlib import Path

import pytest

from privfeat.data import open_features

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("encoder")]


class Bomb:
    """Writes a file when it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


@pytest.fixture
def copy(encoder, tmp_path):
    """Return a copy of the encoder, to be damaged."""
    return Path(shutil.copytree(encoder, tmp_path / "copy"))


def change(path, **values):
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_no_pickle_is_read(copy, reviews, extract, tmp_path):
    mark = tmp_path / "mark"
    (copy / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb(mark)))
    assert extract(reviews, "--model", copy, "--device", "cpu")[0] == 0
    (copy / "model.safetensors").unlink()
    status, _, err = extract(reviews, "--model", copy, "--overwrite")
    assert status == 1
    assert "must have its weights in .safetensors files" in err
    assert not mark.exists()


def test_no_code_of_a_folder_runs(copy, reviews, extract, tmp_path):
    mark = tmp_path / "mark"
    code = f"from pathlib import Path\nPath({str(mark)!r}).touch()\nclass M: pass\n"
    (copy / "evil.py").write_text(code)
    modules = json.loads((copy / "modules.json").read_text())
    kept = (copy / "modules.json").read_text()
    modules[0]["type"] = "evil.M"
    (copy / "modules.json").write_text(json.dumps(modules))
    status, _, err = extract(reviews, "--model", copy)
    assert status == 1
    assert "cannot be loaded" in err
    (copy / "modules.json").write_text(kept)
    change(copy / "config.json", model_type="evil", auto_map={"AutoModel": "evil.M"})
    assert extract(reviews, "--model", copy)[0] == 1
    assert not mark.exists()


def test_a_quantized_encoder_is_refused(copy, reviews, extract):
    """A scale for all numbers of a batch would follow from the largest text."""
    change(copy / "config.json", quantization_config={"quant_method": "torchao"})
    status, _, err = extract(reviews, "--model", copy, "--device", "cpu")
    assert status == 1
    assert "must have weights that are not quantized" in err


def test_other_weights_have_another_digest(encoder, copy, reviews, extract, tmp_path):
    from safetensors.numpy import load_file, save_file

    weights = load_file(copy / "model.safetensors")
    name = sorted(weights)[0]
    save_file(weights | {name: weights[name] + 1}, copy / "model.safetensors")
    found = []
    for folder in (encoder, copy):
        argv = ("--model", folder, "--device", "cpu", "--overwrite")
        assert extract(reviews, *argv)[0] == 0
        found.append(open_features(tmp_path / "out.h5").origin["weights_sha256"])
    assert found[0] != found[1]


def test_a_name_that_cannot_be_fetched_is_refused(reviews, extract, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    status, _, err = extract(reviews, "--model", "no-such/encoder")
    assert status == 1
    assert "--model must be the folder of a sentence encoder" in err
    assert err.count("\n") == 1


def test_without_sentence_transformers_it_says_what_to_install(
    encoder, reviews, extract, monkeypatch
):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    monkeypatch.delitem(sys.modules, "privfeat_extract.text.encoder", raising=False)
    status, _, err = extract(reviews, "--model", encoder)
    assert status == 1
    assert "needs sentence-transformers" in err
    assert "Run pip install 'privfeat[text]', or use --model ngrams" in err
