"""Weights of timm: the outputs of timm, at the places that are said to stay."""

from functools import partial

import jax
import numpy as np
import pytest
from flax import nnx

from privfeat import DPSGDClassifier
from privfeat.networks.engine.network import Network
from privfeat.networks.models import MobileNetV2, NFResNet, ResNet, ViT
from privfeat.networks.weights import build, load_timm_weights
from tests.later import Later

torch, timm = Later("torch"), Later("timm")
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("with_timm")]

STAGES = (((1, 8, 1, 1), (6, 8, 2, 2)), ((6, 16, 1, 2),))


def make_vit(n_outputs=5, **options):
    from timm.models.vision_transformer import VisionTransformer

    sizes = {"img_size": 16, "embed_dim": 24, "depth": 2, "num_heads": 3} | options
    return randomized(VisionTransformer(patch_size=4, num_classes=n_outputs, **sizes))


def make_resnet(n_outputs=5):
    from timm.layers import StdConv2d
    from timm.models.resnetv2 import ResNetV2

    model = ResNetV2(
        layers=[2, 1],
        channels=(128, 256),
        stem_chs=32,
        num_classes=n_outputs,
        stem_type="fixed",
        conv_layer=partial(StdConv2d, eps=1e-8),
    )
    return randomized(model)


def make_nf_resnet(n_outputs=5):
    from timm.models.nfnet import NormFreeNet, _nfres_cfg

    config = _nfres_cfg(depths=(2, 2), channels=(32, 64))
    config.stem_chs = 8
    return randomized(NormFreeNet(config, num_classes=n_outputs))


def make_mobilenet(n_outputs=5, **options):
    from timm.models._efficientnet_builder import decode_arch_def
    from timm.models.efficientnet import EfficientNet

    stages = [["ds_r1_k3_s1_c8"], ["ir_r2_k3_s2_e6_c8"], ["ir_r1_k3_s2_e6_c16"]]
    model = EfficientNet(
        decode_arch_def(stages),
        num_classes=n_outputs,
        num_features=24,
        stem_size=32,
        act_layer=torch.nn.ReLU6,
        **options,
    )
    return randomized(model)


def randomized(model):
    """Return the model with random numbers for zeros and ones as well."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for value in model.parameters():
            value.add_(0.1 * torch.randn(value.shape, generator=generator))
        for name, value in model.named_buffers():
            if name.endswith(("running_mean", "running_var")):
                value.add_(torch.rand(value.shape, generator=generator))
    return model.eval()


@pytest.fixture
def vit(rngs):
    return ViT((16, 16, 3), 5, dim=24, depth=2, n_heads=3, rngs=rngs)


@pytest.fixture
def resnet(rngs):
    return ResNet((64, 64, 3), 5, depths=(2, 1), width=32, bottleneck=True, rngs=rngs)


@pytest.fixture
def nf_resnet(rngs):
    return NFResNet((64, 70, 3), 5, depths=(2, 2), width=8, rngs=rngs)


@pytest.fixture
def mobilenet(rngs):
    return MobileNetV2((32, 32, 3), 5, stages=STAGES, n_features=24, rngs=rngs)


def assert_outputs_are_those_of(theirs, ours, shape):
    images = np.random.default_rng(0).normal(size=(2, *shape, 3)).astype(np.float32)
    with torch.no_grad():
        expected = theirs(torch.from_numpy(images.transpose(0, 3, 1, 2).copy()))
    assert expected.std() > 0.1
    found = jax.jit(lambda x: ours(x))(images)
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-3, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "make", "shape"),
    [
        ("vit", make_vit, (16, 16)),
        ("resnet", make_resnet, (64, 64)),
        ("nf_resnet", make_nf_resnet, (64, 70)),
        ("mobilenet", make_mobilenet, (32, 38)),
    ],
)
def test_outputs_are_those_of_timm(request, kind, make, shape):
    theirs = make()
    ours = load_timm_weights(request.getfixturevalue(kind), theirs.state_dict())
    assert_outputs_are_those_of(theirs, ours, shape)


@pytest.mark.slow
def test_outputs_are_those_of_timm_with_the_padding_of_tensorflow(rngs):
    theirs = make_mobilenet(pad_type="same")
    ours = MobileNetV2(
        (32, 32, 3), 5, stages=STAGES, n_features=24, padding="SAME", rngs=rngs
    )
    load_timm_weights(ours, theirs.state_dict())
    assert_outputs_are_those_of(theirs, ours, (32, 38))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "twin", "options"),
    [
        ("nf_resnet50", "nf_resnet50", {}),
        ("mobilenetv2_100", "mobilenetv2_100", {}),
        ("mobilenetv2_100_same", "mobilenetv2_100", {"pad_type": "same"}),
    ],
)
def test_whole_networks_have_the_outputs_of_timm(name, twin, options, rngs):
    theirs = randomized(timm.create_model(twin, num_classes=5, **options))
    ours = build(name, (64, 64, 3), 5, rngs=rngs)
    load_timm_weights(ours, theirs.state_dict())
    assert_outputs_are_those_of(theirs, ours, (64, 64))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "twin"),
    [
        ("vit_tiny", "vit_tiny_patch16_224"),
        ("resnet50", "resnetv2_50x1_bit"),
        ("nf_resnet50", "nf_resnet50"),
    ],
)
def test_networks_by_name_have_their_twins_in_timm(name, twin):
    """Names and shapes, without a number being made."""
    with torch.device("meta"):
        theirs = timm.create_model(twin, num_classes=1000)
    shapes = {key: tuple(value.shape) for key, value in theirs.state_dict().items()}
    module = nnx.eval_shape(
        lambda: build(name, (224, 224, 3), 1000, rngs=nnx.Rngs(params=0))
    )
    ours = [leaf for _, leaf in nnx.to_flat_state(nnx.state(module))]
    assert len(ours) == len(shapes)
    sizes = sorted(int(np.prod(leaf.shape)) for leaf in ours)
    assert sizes == sorted(int(np.prod(shape)) for shape in shapes.values())


@pytest.mark.parametrize(
    ("kind", "make"), [("vit", make_vit), ("mobilenet", make_mobilenet)]
)
@pytest.mark.parametrize("n_outputs", [7, 0])
def test_a_head_of_another_size_or_none_stays_fresh(request, kind, make, n_outputs):
    network = request.getfixturevalue(kind)
    before = np.asarray(network.head.kernel[...])
    load_timm_weights(network, make(n_outputs=n_outputs).state_dict())
    assert np.array_equal(network.head.kernel[...], before)


def test_a_batch_norm_that_is_not_whole_is_refused(mobilenet):
    tensors = make_mobilenet().state_dict()
    tensors.pop("blocks.1.0.bn2.running_var")
    with pytest.raises(ValueError, match="of this kind and size"):
        load_timm_weights(mobilenet, tensors)


def test_weights_of_another_network_are_refused(vit, resnet, rngs):
    with pytest.raises(ValueError, match="of this kind and size"):
        load_timm_weights(vit, make_vit(depth=3).state_dict())
    with pytest.raises(ValueError, match="images of the size"):
        load_timm_weights(vit, make_vit(img_size=32).state_dict())
    with pytest.raises(ValueError, match="of this kind and size"):
        load_timm_weights(resnet, make_vit().state_dict())
    with pytest.raises(TypeError, match="timm has no such network"):
        load_timm_weights(build("mlp", (4,), 2, rngs=rngs), {})


def test_a_fit_starts_from_a_file_of_weights(tmp_path, vit):
    """Every parameter of a group that stays is as it was in the file."""
    safetensors = pytest.importorskip("safetensors.torch")
    theirs = make_vit()
    safetensors.save_file(theirs.state_dict(), tmp_path / "vit.safetensors")

    def make(shape, n_outputs, *, rngs):
        return ViT(shape, n_outputs, dim=24, depth=2, n_heads=3, rngs=rngs)

    draw = np.random.default_rng(0)
    images = draw.normal(size=(6, 16, 16, 3))
    clf = DPSGDClassifier(
        model=make,
        noise_multiplier=2.0,
        expected_batch_size=None,
        classes=range(5),
        n_iter=1,
        microbatch_size=2,
        frozen=4,
        weights=tmp_path / "vit.safetensors",
    ).fit(images, draw.integers(0, 5, 6))
    expected = Network(load_timm_weights(vit, theirs.state_dict())).initial
    same = {n for n in expected if np.array_equal(expected[n], clf.parameters_[n])}
    assert set(expected) - same == {
        f"{layer}/{leaf}"
        for layer, leaves in (("norm", ("scale", "bias")), ("head", ("kernel", "bias")))
        for leaf in leaves
    }


@pytest.mark.parametrize("frozen", [-1, 5, True, 1.0, "blocks", ["blocks"]])
def test_bad_groups_are_refused(frozen):
    X = np.zeros((4, 8, 8, 1), np.uint8)
    clf = DPSGDClassifier(
        model="vit_tiny",
        noise_multiplier=2.0,
        expected_batch_size=None,
        classes=range(2),
        n_iter=1,
        frozen=frozen,
    )
    with pytest.raises((TypeError, ValueError), match="frozen"):
        clf.fit(X, [0, 1, 0, 1])


@pytest.mark.parametrize("weights", [3, ["w"], True])
def test_bad_weights_are_refused(weights):
    clf = DPSGDClassifier(noise_multiplier=2.0, classes=range(2), weights=weights)
    with pytest.raises(TypeError, match="weights must be None, a path"):
        clf.fit(np.zeros((4, 8, 8, 1), np.uint8), [0, 1, 0, 1])


@pytest.mark.parametrize("content", [None, b"no weights"])
def test_weights_that_cannot_be_read_are_refused(tmp_path, vit, content):
    path = tmp_path / "w.safetensors"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=r"a \.safetensors file, but .*w\.safe"):
        load_timm_weights(vit, path)


def test_weights_with_other_axes_are_refused(mobilenet):
    tensors = make_mobilenet().state_dict()
    tensors["conv_stem.weight"] = tensors["conv_stem.weight"].flatten()
    with pytest.raises(ValueError, match="tensors of other shapes"):
        load_timm_weights(mobilenet, tensors)
