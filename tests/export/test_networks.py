"""What onnxruntime makes of an exported network is what the network makes."""

import json

import numpy as np
import pytest

from privfeat import DPSGDClassifier, DPSGDRegressor, TemperatureScaling
from privfeat.export import export_onnx
from tests.export.conftest import tiny_network

pytestmark = pytest.mark.slow

pytest.importorskip("flax", reason="pip install 'privfeat[train]'")
onnx = pytest.importorskip("onnx", reason="pip install 'privfeat[onnx]'")
ort = pytest.importorskip("onnxruntime", reason="pip install 'privfeat[dev]'")

# float32, of which XLA and onnxruntime add up in different orders
NEAR = {"rtol": 2e-5, "atol": 2e-6}
KINDS = {
    "mlp": (5,),
    "mobilenetv2_100": (64, 64, 3),
    "mobilenetv2_100_same": (64, 64, 3),
    "nf_resnet50": (32, 32, 3),
    "resnet18": (16, 16, 3),
    "resnet50": (64, 64, 3),
    "resnetv2_50x1_bit": (64, 64, 3),
    "sample_convnet": (16, 18, 1),
    "small_alexnet": (9, 7, 3),
    "simpleVGG-8(1)-16(2)-16": (9, 8, 3),
    "vit_tiny": (32, 32, 3),
    "wrn_16_4": (16, 16, 3),
    "wrn_16_4_norm_first": (8, 8, 1),
}


def drawn(name, shape, cls=DPSGDClassifier, n_outputs=3):
    """Return a model as a fit leaves it, of parameters that are drawn."""
    from privfeat.networks.images.records import TO_UNIT_RANGE
    from privfeat.networks.weights import network_of

    draw = np.random.default_rng(0)
    model = cls(model=name)
    model.parameters_ = {
        key: np.asarray(leaf) + 0.01 * draw.normal(size=leaf.shape).astype(np.float32)
        for key, leaf in network_of(name, shape, n_outputs).initial.items()
    }
    model.input_shape_, model.n_outputs_ = shape, n_outputs
    model.pixel_scale_ = TO_UNIT_RANGE
    if cls is DPSGDClassifier:
        model.classes_ = np.array([f"class {i}" for i in range(n_outputs)])
    return model


def session_of(model, dtype):
    """Return a session of the graph, without a statement."""
    from privfeat.export.graph import Graph
    from privfeat.export.networks import add_network

    graph = Graph()
    add_network(graph, dtype, model, 1.0)
    return quiet(graph.model("a network", {}).SerializeToString())


def quiet(content):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    return ort.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def answers(session, X):
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {"X": X}), strict=True))


def records_of(shape, dtype, n_records):
    draw = np.random.default_rng(n_records)
    if dtype == "uint8":
        return draw.integers(0, 256, (n_records, *shape)).astype(np.uint8)
    return draw.normal(size=(n_records, *shape)).astype(np.float32)


def assert_same(found, model, X):
    np.testing.assert_array_equal(found["label"], model.predict(X))
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), **NEAR)
    want = model.decision_function(X)
    np.testing.assert_allclose(
        found["scores"], want, rtol=0.0, atol=3e-5 * np.abs(want).max()
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_graph_of_each_network_predicts_as_it_does(name):
    shape = KINDS[name]
    model, dtype = drawn(name, shape), "uint8" if len(shape) > 1 else "float32"
    session = session_of(model, dtype)
    for n_records in (1, 3):
        X = records_of(shape, dtype, n_records)
        assert_same(answers(session, X), model, X)


@pytest.mark.slow
def test_every_named_network_has_its_test():
    from privfeat.networks.models import NETWORKS

    of_larger_sizes = {"vit_base", "vit_small"}  # of vit_tiny
    assert {*NETWORKS} - of_larger_sizes <= {*KINDS}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.onnx"


@pytest.mark.parametrize("n_classes", [2, 3])
def test_graph_of_a_fitted_network_predicts_as_it_does(n_classes, path):
    model = tiny_network(n_classes)
    export_onnx(model, path)
    session, X = quiet(path.read_bytes()), records_of((3,), "float32", 7)
    assert_same(answers(session, X), model, X)
    assert answers(session, X[:0])["probabilities"].shape == (0, n_classes)
    metadata = {p.key: p.value for p in onnx.load(path).metadata_props}
    assert metadata["estimator"] == "DPSGDClassifier"
    assert json.loads(metadata["privacy"])["epsilon"] == model.privacy_.epsilon


def test_graph_of_a_network_fails_for_a_record_that_is_not_finite(path):
    model, X = tiny_network(), records_of((3,), "float32", 4)
    export_onnx(model, path)
    X[2, 1] = np.nan
    with pytest.raises(Exception, match="out of data bounds"):
        answers(quiet(path.read_bytes()), X)


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_graph_of_a_network_of_numbers_predicts_as_it_does(n_outputs):
    model = drawn("mlp", (4,), DPSGDRegressor, n_outputs)
    X = records_of((4,), "float32", 5)
    (found,) = answers(session_of(model, "float32"), X).values()
    np.testing.assert_allclose(found, model.predict(X), **NEAR)


def test_graph_of_a_scaled_network_predicts_as_it_does(path):
    model, X = tiny_network(3), records_of((3,), "float32", 30)
    scaled = TemperatureScaling(model, public=True).fit(X, np.arange(30) % 3)
    export_onnx(scaled, path)
    found = answers(quiet(path.read_bytes()), X)
    np.testing.assert_allclose(found["probabilities"], scaled.predict_proba(X), **NEAR)


def test_export_onnx_of_a_network_refuses_what_no_graph_has(path):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer

    model = tiny_network()
    with pytest.raises(ValueError, match="dtype must be uint8 or float32 for a netw"):
        export_onnx(model, path, dtype="float64")
    voting = model.set_params(n_votes=3, augmentation="crop_flip")
    with pytest.raises(ValueError, match="n_votes must be 1 for a graph, got 3"):
        export_onnx(voting, path)
    model.set_params(n_votes=1, augmentation="none")
    piped = make_pipeline(Normalizer().fit(np.eye(3)), model)
    with pytest.raises(TypeError, match="a network must be the only step"):
        export_onnx(piped, path)


def test_graph_refuses_an_operation_that_it_does_not_know():
    import jax.numpy as jnp
    from flax import nnx

    class Sorting(nnx.Module):
        def __init__(self):
            self.scale = nnx.Param(jnp.ones(3))

        def __call__(self, x):
            return jnp.sort(x * self.scale[...][None], axis=1)

    model = drawn("mlp", (3,))
    model.set_params(model=Sorting())
    model.parameters_ = {"scale": np.ones(3, np.float32)}
    with pytest.raises(TypeError, match="operations that have a form in ONNX here"):
        session_of(model, "float32")
