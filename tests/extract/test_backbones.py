import logging

import pytest

pytest.importorskip("timm")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--model", "resnet5O"], "must be a model of timm, got 'resnet5O'. Did you"),
        (["--model", "test_resnet.none"], "Invalid pretrained tag (none)"),
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
    images, run, tmp_path, monkeypatch
):
    from timm.models import _builder

    def offline(*args, **kwargs):
        logging.getLogger("huggingface_hub").warning("retrying")
        raise OSError("Name or service not known")

    monkeypatch.setattr(_builder, "load_state_dict_from_hf", offline)
    argv = ("--model", "test_resnet", "--out", tmp_path / "out.h5", "--quiet")
    status, _, err = run("--data", images, *argv)
    assert status == 1
    assert "give local weights with --checkpoint" in err
    assert err.count("\n") == 1
