import logging
import socket
import time

import numpy as np
import pytest

from privfeat.data import open_features
from privfeat.data.networks import KNOWN_NETWORKS
from privfeat_extract import hub
from tests.later import Later

timm = Later("timm")
pytestmark = pytest.mark.usefixtures("with_timm")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--model", "resnet5O"], "must be a model of timm, got 'resnet5O'. Did you"),
        (["--model", "test_resnet.none"], "got 'none'. There are r160_in1k."),
        (["--model", "vit_tiny.none"], "There are augreg_in21k, augreg_in21k_ft_in1k."),
        (["--model", "mobilenetv2_100_sane"], "Did you mean mobilenetv2_100_same"),
        (["--model-kwargs", "depth_of=3"], "unexpected keyword argument 'depth_of'"),
        (["--model", "mixer_s32_224"], "Its own size is 224: pass --crop 224."),
        (["--model", "test_vit", "--crop", 30], "--crop must be a size that test_vit"),
    ],
)
def test_load_backbone_refuses_in_one_line(images, network, tmp_path, argv, message):
    status, _, err = network(images, *argv)
    assert status == 1
    assert message in err
    assert err.startswith("privfeat-extract: error: --")
    assert err.count("\n") == 1
    assert not list(tmp_path.glob("out*"))


def test_load_backbone_without_network_says_what_to_do(
    images, run, tmp_path, monkeypatch, plant
):
    from timm.models import _builder

    def offline(*args, **kwargs):
        logging.getLogger("huggingface_hub").warning("retrying")
        raise OSError("Name or service not known")

    plant("answer of a hub", lambda url: True)
    monkeypatch.setattr(_builder, "load_state_dict_from_hf", offline)
    argv = ("--model", "test_resnet", "--out", tmp_path / "out.h5", "--quiet")
    status, _, err = run("--data", images, *argv)
    assert status == 1
    assert "give local weights with --checkpoint" in err
    assert err.count("\n") == 1


def test_load_backbone_does_not_wait_for_a_hub_that_does_not_answer(
    images, run, tmp_path, monkeypatch, plant
):
    """The hub's client sleeps between its retries; nothing of it may be left."""
    from huggingface_hub import constants

    def slept(seconds):
        raise AssertionError(seconds)

    plant("answer of a hub", lambda url: False)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(time, "sleep", slept)
    argv = ("--model", "test_resnet", "--out", tmp_path / "out.h5", "--quiet")
    status, _, err = run("--data", images, *argv)
    assert status == 1
    assert "give local weights with --checkpoint" in err
    assert constants.HF_HUB_OFFLINE is False


def test_answers_is_quick_to_say_no():
    assert not hub.answers("http://127.0.0.1:1")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        assert not hub.answers(
            f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.2
        )
        assert time.monotonic() - began < 60.0


@pytest.mark.parametrize("name", KNOWN_NETWORKS)
def test_known_networks_are_those_of_timm(name):
    known = KNOWN_NETWORKS[name]
    config = timm.get_pretrained_cfg(known.timm)
    same = (known.mean, known.std) == (config.mean, config.std)
    assert known.interpolation == config.interpolation
    assert same == known.published


def test_a_name_of_train_has_its_padding_and_scale(images, network, tmp_path):
    """The same as by hand; without padding and scale the features are others."""
    from safetensors.torch import save_file

    weights = tmp_path / "weights.safetensors"
    save_file(timm.create_model("mobilenetv2_100").state_dict(), weights)
    found = {}
    for name, more in (
        ("mobilenetv2_100_same", ()),
        ("mobilenetv2_100", ()),
        (
            "mobilenetv2_100",
            ("--model-kwargs", "pad_type=same", "--mean", 0.5, "--std", 0.5),
        ),
    ):
        given = ("--model", name, "--checkpoint", weights, "--splits", "test")
        status, _, err = network(images, *given, *more, "--overwrite")
        assert status == 0
        twins = "mobilenetv2_100_same" in err and "features are worse" in err
        assert twins is not bool(more)
        found[name, bool(more)] = open_features(tmp_path / "out.h5")["test"].X[:]
    ours = found["mobilenetv2_100_same", False]
    np.testing.assert_array_equal(ours, found["mobilenetv2_100", True])
    assert np.abs(ours - found["mobilenetv2_100", False]).max() > 1e-4


def test_a_network_without_published_weights_needs_a_file(images, run, tmp_path):
    argv = ("--model", "mobilenetv2_100_same", "--out", tmp_path / "out.h5")
    status, _, err = run("--data", images, *argv)
    assert status == 1
    assert "Pass --checkpoint." in err
