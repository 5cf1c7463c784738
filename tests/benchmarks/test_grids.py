"""Grids of settings, and norms of gradients, on a few images."""

import json
import math
from itertools import pairwise

import gradient_norms
import grids
import jax
import numpy as np
import pytest

from privfeat.networks.images.augment import Views

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


@pytest.fixture
def images(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    for split in ("train", "test"):
        for name, grey in (("a", 10), ("b", 180)):
            folder = tmp_path / "images" / split / name
            folder.mkdir(parents=True)
            for number in range(8):
                pixels = rng.integers(grey, grey + 60, (4, 4, 3)).astype(np.uint8)
                Image.fromarray(pixels).save(folder / f"{number}.png")
    return tmp_path / "images"


def run(module, monkeypatch, *words):
    monkeypatch.setattr("sys.argv", [module.__name__, *map(str, words)])
    module.main()


def test_rates_are_tried_with_every_clip_norm(images, tmp_path, monkeypatch):
    out = tmp_path / "rates.json"
    words = ["--grid", "rates", "--size", 4, "--records", 16, "--model", "mlp"]
    words += ["--batches", 8, "--epochs", 1, "--clip-norms", 0.1, 1, "--rates", 0.1]
    run(grids, monkeypatch, images, *words, "--out", out)
    kept = json.loads(out.read_text())
    assert list(kept["cells"]) == ["0.1, 0.1", "1.0, 0.1"]
    # without noise there is no epsilon
    assert {cell["epsilon"] for cell in kept["cells"].values()} == {None}


def parsed(monkeypatch, *words):
    """Return the arguments of a grid."""
    seen = []
    monkeypatch.setattr(grids, "read", lambda args: seen.append(args) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run(grids, monkeypatch, *words)
    return seen[0]


def test_noise_of_the_mean_is_that_of_the_smallest_batch(monkeypatch):
    """Kurakin et al. 2022, appendix E: ``sigma C / B`` is one for all batches."""
    words = ["--batches", 64, 256, 1024, "--noise-multiplier", 0.5]
    args = parsed(monkeypatch, "--grid", "batches", *words)
    _, epochs, batches, settings = grids.GRIDS["batches"](args)
    found = [settings(epochs[0], batch) for batch in batches]
    ratios = [f["noise_multiplier"] / f["expected_batch_size"] for f in found]
    assert ratios == pytest.approx([0.5 / 64] * 3)
    assert {f["warmup"] for f in found} == {0.1}


def test_grids_of_networks_name_their_settings(monkeypatch):
    args = parsed(monkeypatch, "--grid", "norms", "--model", "wrn_16_4")
    _, orders, views, settings = grids.GRIDS["norms"](args)
    assert settings(orders[1], views[1])["model"] == "wrn_16_4_norm_first"
    assert settings(orders[0], 1)["augmentation"] == "none"
    _, models, _, settings = grids.GRIDS["optimizers"](args)
    assert settings(models[0], "adam")["learning_rate"] == 0.002
    assert settings(models[0], "sgd")["learning_rate"] == args.rates[-1]
    _, models, noises, settings = grids.GRIDS["sizes"](args)
    found = settings(models[0], noises[-1])
    assert (found["noise_multiplier"], found["learning_rate"]) == (3.5, None)


def test_choices_of_training_are_added_one_after_another(monkeypatch):
    args = parsed(monkeypatch, "--grid", "choices", "--views", 1, 4)
    _, names, noises, settings = grids.GRIDS["choices"](args)
    found = [settings(name, noises[0]) for name in names]
    assert [len(each) for each in found] == [1, 2, 4, 5]
    assert all(a.items() <= b.items() for a, b in pairwise(found))
    assert (found[-1]["n_copies"], found[-1]["n_votes"]) == (4, 4)


def test_error_of_a_cell_is_that_of_the_mean_of_its_fits():
    assert grids.percent([0.5]) == "50.0"
    assert grids.percent([0.5, 0.6]) == "55.0 ± 5.0"


def test_wide_networks_have_the_size_and_order_of_their_names():
    assert grids.network("wrn_16_4_norm_first") == "wrn_16_4_norm_first"
    made = grids.network("wrn_22_2_norm_first").keywords
    assert made == {"depth": 22, "widening": 2, "order": "conv_norm_relu"}
    assert grids.network("wrn_10_1").keywords["order"] == "conv_relu_norm"


def test_norms_of_mean_gradients_are_kept(images, tmp_path, monkeypatch):
    out, figure = tmp_path / "norms.json", tmp_path / "norms.png"
    words = [
        "--size",
        4,
        "--records",
        16,
        "--model",
        "mlp",
        "--batch",
        8,
        "--epochs",
        1,
    ]
    words += ["--views", 2, "--points", 2, "--images-looked-at", 5]
    run(gradient_norms, monkeypatch, images, *words, "--out", out, "--figure", figure)
    cells = json.loads(out.read_text())["cells"]
    assert set(cells) == {"one view", "2 views"}
    for norms in cells.values():
        assert list(norms) == ["50%", "100%"]
        assert all(len(each) == 5 and min(each) > 0 for each in norms.values())
    assert figure.exists()


def test_mean_gradient_is_that_of_the_views():
    """Of equal views the mean changes nothing; of one it is the gradient itself."""

    class Fitted:
        model = "mlp"
        input_shape_ = (2, 2, 1)
        n_outputs_ = 2

    rng = np.random.default_rng(0)
    sizes = (4, 128, 128, 128, 2)
    Fitted.parameters_ = {
        f"layers/{i}/{kind}": rng.normal(size=shape).astype(np.float32) / 10
        for i in range(4)
        for kind, shape in (("kernel", sizes[i : i + 2]), ("bias", sizes[i + 1 :][:1]))
    }
    X, y = rng.normal(size=(3, 2, 2, 1)).astype(np.float32), np.array([0, 1, 1])
    once = gradient_norms.mean_gradient_norms(Fitted, X, y, Views("none", 1))
    again = gradient_norms.mean_gradient_norms(Fitted, X, y, Views("none", 3))
    assert once == pytest.approx(again, rel=1e-4)  # the mean of equal gradients
    loss = gradient_norms.record_loss(Fitted)
    for x, label, norm in zip(X, y, once, strict=True):
        leaves = jax.tree.leaves(jax.grad(loss)(Fitted.parameters_, x, label))
        expected = math.sqrt(sum(float((leaf**2).sum()) for leaf in leaves))
        assert norm == pytest.approx(expected, rel=1e-4)
