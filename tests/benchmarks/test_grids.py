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


def test_votes_differ_in_how_they_are_counted_alone(monkeypatch):
    args = parsed(monkeypatch, "--grid", "votes", "--views", 1, 4)
    _, names, views, settings = grids.GRIDS["votes"](args)
    mean, majority = (settings(name, views[0]) for name in names)
    assert mean | {"vote": "majority"} == majority
    assert (mean["n_copies"], mean["n_votes"]) == (4, 1)


def test_cells_that_differ_in_votes_share_their_fits(images, monkeypatch):
    words = ["--grid", "votes", "--size", 4, "--records", 16, "--model", "mlp"]
    words += ["--batches", 8, "--epochs", 1, "--views", 2, "--seeds", 2]
    args = parsed(monkeypatch, images, *words)
    monkeypatch.undo()
    data, fits = grids.read(args), {}
    _, names, _, settings = grids.GRIDS["votes"](args)
    for name in names:
        grids.fitted(data, settings(name, 2), args, fits)
    assert [clf.vote for clf in fits.values()] == ["majority"] * args.seeds


def test_momentum_is_dampened_at_each_rate(monkeypatch):
    words = ["--momenta", 0, 0.9, "--dampenings", 0, 0.9, "--rates", 0.1, 1]
    args = parsed(monkeypatch, "--grid", "momenta", *words)
    _, pairs, rates, settings = grids.GRIDS["momenta"](args)
    assert pairs == [(0, 0), (0.9, 0), (0.9, 0.9)]
    found = settings(pairs[-1], rates[-1])
    assert found == {"momentum": 0.9, "dampening": 0.9, "learning_rate": 1}


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
