import os
import shutil
import sys
from types import ModuleType

import numpy as np
import pytest

from privfeat.data import open_features
from tests.later import Later

torch, timm = Later("torch"), Later("timm")
image_module = pytest.importorskip("PIL.Image")
pytestmark = pytest.mark.usefixtures("with_timm")


def direct_features(model, images, mean=None, std=None):
    """Compute what the command should store, with torchvision and a bare loop."""
    from torchvision import transforms

    config = timm.data.resolve_model_data_config(model)
    mode = transforms.InterpolationMode(config["interpolation"])
    prepare = transforms.Compose(
        [
            transforms.Resize(40, mode),
            transforms.CenterCrop(32),
            transforms.ToTensor(),
            transforms.Normalize(mean or config["mean"], std or config["std"]),
        ]
    )
    paths = sorted(images.glob("train/*/*.png"))
    pixels = [prepare(image_module.open(path).convert("RGB")) for path in paths]
    with torch.inference_mode():
        return model.eval()(torch.stack(pixels)).numpy()


@pytest.mark.parametrize(
    "options", [(), ("--no-channels-last",), ("--workers", 2), ("--batch-size", 3)]
)
def test_network_features_equal_a_direct_forward(images, network, tmp_path, options):
    status, out, err = network(images, *options)
    assert status == 0, err
    assert "14 images in" in out
    torch.manual_seed(0)
    model = timm.create_model("test_resnet", num_classes=0)
    expected = direct_features(model, images)
    train = open_features(tmp_path / "out.h5")["train"]
    np.testing.assert_allclose(train.X[:], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(train.y, [0] * 5 + [1] * 5)


def test_network_sees_batches_of_one_shape(images, network, plant):
    """Of another shape they are rounded otherwise: an image more would move others."""
    shapes, load = set(), plant.genuine("network that is loaded")

    def watched(*args, **kwargs):
        backbone = load(*args, **kwargs)
        backbone.model.register_forward_pre_hook(
            lambda _, inputs: shapes.add(tuple(inputs[0].shape))
        )
        return backbone

    plant("network that is loaded", watched)
    (images / "train" / "cat" / "0.png").write_bytes(b"")
    assert network(images, "--batch-size", 4, "--skip-bad")[0] == 0
    assert shapes == {(4, 3, 32, 32)}


def test_network_features_use_mean_std_and_kwargs(images, network, tmp_path):
    options = ("--mean", 0.5, "--std", 0.25, "--model-kwargs", "global_pool=max")
    assert network(images, *options)[0] == 0
    torch.manual_seed(0)
    model = timm.create_model("test_resnet", num_classes=0, global_pool="max")
    expected = direct_features(model, images, [0.5] * 3, [0.25] * 3)
    file = open_features(tmp_path / "out.h5")
    np.testing.assert_allclose(file["train"].X[:], expected, rtol=1e-4, atol=1e-5)
    assert file.metadata["pooling"] == "max"
    assert file.metadata["mean"] == [0.5] * 3


def test_network_features_use_a_vit_at_another_size(images, network, tmp_path):
    assert network(images, "--model", "test_vit")[0] == 0
    torch.manual_seed(0)
    model = timm.create_model("test_vit", num_classes=0)
    model.set_input_size(img_size=(32, 32))
    expected = direct_features(model, images)
    found = open_features(tmp_path / "out.h5")["train"].X[:]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_network_metadata_say_how_features_were_made(images, network, tmp_path):
    assert network(images, "--weights-license", "MIT")[0] == 0
    file = open_features(tmp_path / "out.h5")
    expected = {
        "model": "test_resnet",
        "weights_source": "random, seed 0",
        "weights_license": "MIT",
        "pooling": "avg",
        "input_size": [3, 32, 32],
        "resize": 40,
        "crop": 32,
        "interpolation": "bilinear",
        "feature_dtype": "float32",
        "precision": "float32",
        "dataset": "images",
        "n_rows": 14,
    }
    assert {name: file.metadata[name] for name in expected} == expected
    assert len(file.metadata["weights_sha256"]) == 64
    assert file.metadata["versions"]["timm"] == pytest.importorskip("timm").__version__
    assert len(file["train"].metadata["file_list_sha256"]) == 64
    assert file["train"].metadata["n_skipped"] == 0


def test_network_features_that_overflow_float16_are_refused(images, network, tmp_path):
    options = ("--dtype", "float16", "--std", 1e-6)
    status, _, err = network(images, *options, "--mean", 0.5)
    assert status == 1
    assert "features must be finite as float16" in err
    assert "float32" in err
    assert not list(tmp_path.glob("out*"))


def test_network_runs_at_low_precision(images, network, tmp_path):
    assert network(images)[0] == 0
    exact = open_features(tmp_path / "out.h5")["train"].X[:]
    options = ("--precision", "bfloat16", "--overwrite")
    assert network(images, *options)[0] == 0
    found = open_features(tmp_path / "out.h5")["train"].X[:]
    assert 0 < np.abs(found - exact).max() < 0.1 * np.abs(exact).max()


def test_network_names_a_missing_gpu(images, network):
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    status, _, err = network(images, "--device", "cuda")
    assert status == 1
    assert "torch finds no GPU for 'cuda'. Pass --device cpu." in err


@pytest.mark.parametrize(
    ("name", "expected"), [("auto", 1), ("cuda", 1), ("cuda:3", 3)]
)
def test_network_takes_the_gpu_of_its_local_rank(monkeypatch, name, expected):
    from privfeat_extract.devices import find_device

    chosen = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    assert find_device(name, 5) == torch.device("cuda", expected)
    assert chosen == [torch.device("cuda", expected)]


def test_network_shares_the_cores_of_a_host(monkeypatch):
    from privfeat_extract.devices import default_workers

    cores = set(range(24))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: cores)
    assert default_workers(True, 1) == 8
    assert default_workers(True, 8) == 3
    assert default_workers(True, 99) == 1
    assert default_workers(False, 2) == 3


@pytest.mark.gpu
def test_network_features_agree_on_a_gpu(images, network, tmp_path):
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    assert network(images, "--device", "cpu")[0] == 0
    expected = open_features(tmp_path / "out.h5")["train"].X[:]
    options = ("--device", "cuda", "--precision", "float32", "--overwrite")
    assert network(images, *options)[0] == 0
    found = open_features(tmp_path / "out.h5")["train"].X[:]
    np.testing.assert_allclose(found, expected, rtol=1e-2, atol=1e-3)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
@pytest.mark.filterwarnings("ignore")
def test_network_features_survive_compilation(images, network, tmp_path):
    """The last batch of each split is smaller, so it is padded."""
    assert network(images)[0] == 0
    expected = open_features(tmp_path / "out.h5")["train"].X[:]
    status, _, err = network(images, "--compile", "--overwrite")
    assert status == 0, err
    found = open_features(tmp_path / "out.h5")["train"].X[:]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_torch_and_torchvision_of_two_builds_are_one_line(
    run, images, tmp_path, monkeypatch
):
    """Whoever took a CPU build of torch alone saw a traceback of 60 lines."""

    class Unfit(ModuleType):
        def __getattr__(self, name):
            raise RuntimeError("operator torchvision::nms does not exist")

    monkeypatch.delitem(sys.modules, "privfeat_extract.network", raising=False)
    backbones = "privfeat_extract.backbones"
    monkeypatch.setitem(sys.modules, backbones, Unfit(backbones))
    out = tmp_path / "features.h5"
    argv = ["--data", images, "--model", "resnet18", "--no-pretrained", "--out", out]
    status, _, said = run(*argv)
    assert status == 1
    assert "torch and torchvision must be builds that fit each other" in said
    assert "nms does not exist. Install torch and torchvision by one command" in said
    assert not out.exists()
