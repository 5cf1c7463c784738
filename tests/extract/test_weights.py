import hashlib

import numpy as np
import pytest

from privfeat.data import open_features
from tests.later import Later

torch, timm = Later("torch"), Later("timm")
pytestmark = pytest.mark.usefixtures("with_timm")


@pytest.fixture
def model():
    torch.manual_seed(5)
    return timm.create_model("test_resnet", num_classes=10)


def save(state, path):
    if path.suffix == ".safetensors":
        from safetensors.torch import save_file

        save_file(state, path)
    else:
        torch.save(state, path)
    return path


@pytest.mark.parametrize("name", ["w.safetensors", "w.pth"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_load_checkpoint_leaves_out_the_classifier(
    images, network, model, tmp_path, name, wrapped
):
    if wrapped and name.endswith("safetensors"):
        pytest.skip("this format holds tensors only")
    state = {"state_dict": model.state_dict()} if wrapped else model.state_dict()
    path = save(state, tmp_path / name)
    status, _, err = network(images, "--checkpoint", path)
    assert status == 0, err
    file = open_features(tmp_path / "out.h5")
    assert file.metadata["weights_sha256"] == (
        hashlib.sha256(path.read_bytes()).hexdigest()
    )
    assert file.metadata["weights_source"] == name
    rows = file["train"].X[:]
    assert network(images, "--overwrite", "--no-pretrained")[0] == 0
    other = open_features(tmp_path / "out.h5")["train"].X[:]
    assert np.abs(rows - other).max() > 1e-3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.pop("conv1.0.weight"), "1 missing (first: conv1.0.weight)"),
        (lambda s: s.update(x=torch.ones(1)), "1 unexpected (first: x)"),
        (
            lambda s: s.update({"bn1.weight": torch.ones(3)}),
            "1 of another shape (first: bn1.weight (3,) instead of",
        ),
        (
            lambda s: s.update({"bn1.weight": None}),
            "1 of another shape (first: bn1.weight no tensor instead of",
        ),
    ],
)
def test_load_checkpoint_is_strict(images, network, model, tmp_path, change, message):
    state = model.state_dict()
    assert "conv1.0.weight" in state or "conv1.weight" in state
    if "conv1.0.weight" not in state:
        state["conv1.0.weight"] = state["conv1.weight"]
    change(state)
    kind = "pth" if None in state.values() else "safetensors"
    path = save(dict(state), tmp_path / f"w.{kind}")
    status, _, err = network(images, "--checkpoint", path)
    assert status == 1
    assert message in err
    assert err.count("\n") == 1
    assert not list(tmp_path.glob("out*"))


class Harmful:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_load_checkpoint_runs_no_code(images, network, tmp_path):
    path, trace = tmp_path / "w.pth", tmp_path / "trace"
    torch.save({"state_dict": Harmful(trace)}, path)
    status, _, err = network(images, "--checkpoint", path)
    assert status == 1
    assert "cannot be read" in err
    assert not trace.exists()


@pytest.mark.parametrize("name", ["w.safetensors", "w.pth"])
@pytest.mark.parametrize("content", [b"", b"not weights", None])
def test_load_checkpoint_names_an_unreadable_file(
    images, network, tmp_path, name, content
):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    status, _, err = network(images, "--checkpoint", path)
    assert status == 1
    assert err.startswith("privfeat-extract: error: --checkpoint must be a")
    assert err.count("\n") == 1
