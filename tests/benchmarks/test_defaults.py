"""The scripts that defaults of networks are held by, and the one beside opacus."""

import json
from argparse import Namespace

import default_length
import default_views
import dpsgd_speed
import numpy as np
import pytest
import untuned

from privfeat.networks.training.defaults import STEPS, default_epochs

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


@pytest.fixture
def fitted(monkeypatch):
    """Return the parameters of all fits, none of which is made."""
    made = []

    class Recorded:
        def __init__(self, **params):
            made.append(params)
            release = Namespace(noise_stddev=3.0, l2_sensitivity=2.0)
            self.privacy_ = Namespace(releases=[release])

        def fit(self, X, y):
            made[-1]["n"] = len(X)
            return self

        def score(self, X, y):
            return 0.25

    for module in (default_length, default_views):
        monkeypatch.setattr(module, "DPSGDClassifier", Recorded)
    return made


def run(module, monkeypatch, tmp_path, *words):
    """Return the tables that a script keeps."""
    out = tmp_path / "out.json"
    given = [*map(str, words), "--out", str(out)]
    monkeypatch.setattr("sys.argv", [module.__name__, *given])
    module.main()
    return json.loads(out.read_text())["tables"]


def test_lengths_differ_from_the_default_in_epochs_or_in_steps(
    fitted, monkeypatch, tmp_path
):
    words = ["digits", "--epsilons", 8, "--seeds", 2]
    rows = run(default_length, monkeypatch, tmp_path, *words)["lengths"]["rows"]
    tried = [(fit["epochs"], fit["n_iter"]) for fit in fitted[::2]]
    usual = default_epochs(8, default_length.DELTA)
    steps = [STEPS // 4, STEPS, 4 * STEPS]
    expected = [(usual, n) for n in steps] + [(usual / 2, STEPS), (2 * usual, STEPS)]
    assert tried == expected
    assert [fit["random_state"] for fit in fitted] == [0, 1] * 5
    assert [row[-1] for row in rows] == ["", "default", "", "", ""]
    assert {tuple(row[3:5]) for row in rows} == {("1.50", "25.00 ± 0.00")}


def test_views_take_the_time_of_epochs(fitted, monkeypatch, tmp_path):
    words = ["digits", "--epsilons", 8, "--seeds", 1]
    rows = run(default_views, monkeypatch, tmp_path, *words)
    table = rows["clip norms and views"]["rows"]
    names = [row[1] for row in table]
    assert names[:3] == ["defaults", "clip norm 0.1", "clip norm 10"]
    assert {row[-1] for row in table} == {"0.00"}  # as accurate on both
    # digits have test images of their own
    assert {fit["n"] for fit in fitted} == {1400}
    assert [fit.get("clip_norm") for fit in fitted] == [None, 0.1, 10.0, *[None] * 3]
    assert [fit.get("n_copies", 1) for fit in fitted] == [1, 1, 1, 1, 4, 4]
    usual = default_epochs(8, default_views.DELTA)
    assert [fit.get("epochs") for fit in fitted] == [None] * 5 + [usual / 4]


def test_opacus_is_tuned_over_rates_that_its_clip_norm_scales():
    args = Namespace(clip_norms=[0.1, 1.0], sgd_rates=[0.5], adam_rates=[0.01])
    found = untuned.grid(args, epochs=10)
    assert [(one["optimizer"], one["clip_norm"], one["rate"]) for one in found] == [
        ("sgd", 0.1, 5.0),
        ("adam", 0.1, 0.01),
        ("sgd", 1.0, 0.5),
        ("adam", 1.0, 0.01),
    ]
    assert {(one["epochs"], one["batch"]) for one in found} == {(10, 500)}
    sgd, adam = (untuned.with_batch(one, 2000) for one in found[2:])
    assert (sgd["rate"], sgd["batch"]) == (2.0, 2000)
    assert adam["rate"] == pytest.approx(0.02)


def test_no_image_is_fitted_and_held_out():
    X = np.arange(50)[:, None]
    first, y, second, y_second = untuned.held_out((X, X[:, 0], None, None))
    assert (len(first), len(second)) == (40, 10)
    assert sorted([*y, *y_second]) == list(range(50))
    assert np.array_equal(first[:, 0], y)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "side"), [("sample_convnet", 28), ("simpleVGG-16(1)-32", 8)]
)
def test_networks_of_torch_are_ours(name, side):
    pytest.importorskip("torch")
    from flax import nnx

    from privfeat.networks.weights import build

    theirs = untuned.torch_network(name, side)
    ours = nnx.state(build(name, (side, side, 3), 10, rngs=nnx.Rngs(0)), nnx.Param)
    sizes = [leaf.size for _, leaf in nnx.to_flat_state(ours)]
    assert sum(p.numel() for p in theirs.parameters()) == sum(sizes)


def test_a_row_has_what_a_fit_was_made_with():
    setting = {"epochs": 10.0, "batch": 500, "clip_norm": 1.0, "rate": 0.1, "noise": 2}
    fits = [{"score": 0.5, "seconds": 3.0}, {"score": 0.6, "seconds": 5.0}]
    row = untuned.row(8, "ours", setting, fits)
    assert row == ["8", "ours", "10", "500", "1", "0.1", "2", "55.00 ± 5.00", "4"]


@pytest.mark.slow
def test_a_step_of_every_engine_is_timed(monkeypatch, tmp_path):
    small = {"sample_convnet": ((28, 28, 1), 4, 2)}
    monkeypatch.setattr(dpsgd_speed, "SETTINGS", small)
    tables = run(dpsgd_speed, monkeypatch, tmp_path, "--repeats", 2)
    ((name, *cells),) = tables["steps"]["rows"]
    assert name == "sample_convnet"
    assert len(cells) == 2 * len(dpsgd_speed.ENGINES) + 1
    assert all(float(cell) > 0 for cell in cells[: len(dpsgd_speed.ENGINES) + 1])


def test_a_comparison_has_a_row_for_each_contender(monkeypatch, tmp_path):
    """Those of torch need an interpreter of their own; one that fails says so."""
    started = []

    def measured(script, options, python):
        started.append((options[0], options[2]))
        if options[0] == "vmap":
            raise dpsgd_speed.Failed("out of memory")
        return {"seconds": 0.25, "peak_mib": 500.0, "loaded_mib": 300.0}

    monkeypatch.setattr(dpsgd_speed, "run_fresh", measured)
    rows = run(dpsgd_speed, monkeypatch, tmp_path, "--compare", "--batch", 7)
    found = {tuple(row[:2]): row[2:] for row in rows["comparison"]["rows"]}
    assert len(found) == len(dpsgd_speed.SHAPES) * 6
    assert found["sample_convnet", "privfeat"] == ["0.250", "500", "200"]
    assert found["sample_convnet", "vmap"] == ["failed, out of memory", "-", "-"]
    assert found["sample_convnet", "opacus ghost"] == ["not run", "-", "-"]
    assert set(started) == {(name, 7) for name in dpsgd_speed.JAX}
