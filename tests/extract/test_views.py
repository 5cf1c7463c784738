"""Views, layers and networks side by side, of small networks with random weights."""

import shutil
from dataclasses import astuple

import numpy as np
import pytest

from privfeat.data import open_features
from privfeat_extract.views import VIEWS, View, crops_of
from tests.later import Later

torch, timm = Later("torch"), Later("timm")
image_module = pytest.importorskip("PIL.Image")
needs_timm = pytest.mark.usefixtures("with_timm")


@pytest.fixture
def extracted(images, network, tmp_path):
    """Return a function from options to the training rows and their attributes."""

    def rows_of(*argv, data=images):
        status, _, err = network(data, *argv, "--overwrite")
        assert status == 0, err
        file = open_features(tmp_path / "out.h5")
        return file["train"].X[:], file.metadata

    return rows_of


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def direct_features(name, images, zoom, mirrored):
    """Return features of one view of the training images, by a bare loop."""
    torch.manual_seed(0)
    model = timm.create_model(name, num_classes=0).eval()
    config = timm.data.resolve_model_data_config(model)
    resample = image_module.Resampling[config["interpolation"].upper()]
    side, rows = round(80 * zoom), []
    for path in sorted(images.glob("train/*/*.png")):
        image = image_module.open(path)
        if mirrored:
            image = image.transpose(image_module.Transpose.FLIP_LEFT_RIGHT)
        pixels = np.asarray(image.resize((side, side), resample), np.float32) / 255
        edge = (side - 32) // 2
        pixels = pixels[edge : edge + 32, edge : edge + 32]
        rows.append((pixels - config["mean"]) / config["std"])
    with torch.inference_mode():
        batch = torch.tensor(np.stack(rows), dtype=torch.float32).permute(0, 3, 1, 2)
        return model(batch).numpy()


def test_the_first_view_is_the_image_and_the_second_its_mirror():
    assert VIEWS[:2] == (View(), View(mirrored=True))
    assert len(set(VIEWS)) == len(VIEWS)
    assert all(view.zoom >= 1 for view in VIEWS)
    pixels = np.arange(32 * 32 * 3, dtype=np.uint8).reshape(32, 32, 3)
    crops, views = crops_of(VIEWS[:2], 32, 32, "bicubic")
    np.testing.assert_array_equal(crops(pixels), pixels[None])
    assert views == [(0, False), (0, True)]


@needs_timm
def test_views_give_the_mean_of_their_features(images, extracted):
    """Each view on its own, the image mirrored before all else."""
    for path in images.glob("*/*/*.png"):  # squares, that have a middle at every zoom
        image_module.open(path).convert("RGB").resize((24, 24)).save(path)
    found, metadata = extracted("--views", len(VIEWS), "--resize", 80)
    each = [direct_features("test_resnet", images, *astuple(view)) for view in VIEWS]
    np.testing.assert_allclose(found, np.mean(each, axis=0), rtol=1e-4, atol=1e-5)
    assert np.abs(found - each[0]).max() > 1e-3
    assert metadata["views"] == [str(view) for view in VIEWS]


@needs_timm
def test_views_mix_no_records(images, extracted):
    """Another image in place of one moves its row, and none of the others a bit."""
    before, _ = extracted("--views", 4)
    image_module.new("RGB", (30, 24), (9, 200, 3)).save(images / "train/cat/2.png")
    after, _ = extracted("--views", 4)
    assert [i for i in range(10) if (before[i] != after[i]).any()] == [2]


@needs_timm
def test_one_view_is_the_file_that_it_was(images, extracted):
    """The policy is said where there is one, so that earlier files go on."""
    plain, metadata = extracted()
    again, _ = extracted("--views", 1, "--layers", "output")
    np.testing.assert_array_equal(plain, again)
    assert not {"views", "layers"} & {*metadata, *metadata["arguments"]}


@needs_timm
def test_views_of_one_run_are_not_continued_by_another(images, network, tmp_path):
    bad = images / "train" / "dog" / "4.png"
    whole = bad.read_bytes()
    bad.write_bytes(b"")
    assert network(images, "--views", 2)[0] == 1
    bad.write_bytes(whole)
    status, _, err = network(images, "--views", 4)
    assert status == 1
    assert "views was ['zoom 1', 'zoom 1 mirrored'] and is ['zoom 1'," in err
    status, _, err = network(images, "--views", 2)
    assert status == 0
    assert "continuing after" in err
    assert network(images, "--views", 2, "--resume")[0] == 0
    status, _, err = network(images, "--resume")
    assert status == 1
    assert "was made with others" in err


@needs_timm
def test_views_of_shards_must_agree(images, network, extracted, tmp_path, monkeypatch):
    expected, _ = extracted("--views", 2)
    (tmp_path / "out.h5").unlink()
    monkeypatch.setenv("WORLD_SIZE", "2")
    for number, views in ((0, 2), (1, 1), (1, 2)):
        monkeypatch.setenv("RANK", str(number))
        status, out, err = network(images, "--views", views, "--overwrite")
        assert status == 0, err
        assert ("joined 2 shards" in out) == ((number, views) == (1, 2))
    file = open_features(tmp_path / "out.h5")
    np.testing.assert_allclose(file["train"].X[:], expected, rtol=1e-4, atol=1e-5)
    assert file.origin["views"] == ["zoom 1", "zoom 1 mirrored"]


@needs_timm
def test_views_at_low_precision_are_near(images, extracted):
    exact, _ = extracted("--views", 2)
    low, _ = extracted("--views", 2, "--precision", "bfloat16")
    assert 0 < np.abs(low - exact).max() < 0.1 * np.abs(exact).max()


@needs_timm
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
@pytest.mark.filterwarnings("ignore")
def test_views_survive_compilation(images, extracted):
    exact, _ = extracted("--views", 2, "--layers", 2, "output")
    found, _ = extracted("--views", 2, "--layers", 2, "output", "--compile")
    np.testing.assert_allclose(found, exact, rtol=1e-4, atol=1e-5)


@needs_timm
def test_pool_is_that_of_the_network(images, extracted):
    most, metadata = extracted("--pool", "max")
    expected, _ = extracted("--model-kwargs", "global_pool=max")
    np.testing.assert_array_equal(most, expected)
    assert metadata["pooling"] == "max"


@needs_timm
@pytest.mark.parametrize("name", ["test_resnet", "test_vit"])
def test_layers_stand_side_by_side_each_of_norm_one(images, extracted, name):
    """In the network's order, whatever the order in which they were asked for."""
    known = len(timm.create_model(name, num_classes=0).feature_info)
    whole, _ = extracted("--model", name)
    stage, _ = extracted("--model", name, "--layers", -2)
    both, metadata = extracted("--model", name, "--layers", "output", -2)
    expected = np.hstack([unit(stage), unit(whole)])
    np.testing.assert_allclose(both, expected, rtol=1e-4, atol=1e-6)
    assert metadata["layers"] == [known - 2, "output"]


@needs_timm
def test_networks_stand_side_by_side_each_of_norm_one(images, extracted):
    """With several views, parts are scaled after the mean over them."""
    pair = ("--model", "test_resnet", "--model", "test_vit")
    both, metadata = extracted(*pair, "--interpolation", "bicubic", "--views", 2)
    parts = [
        extracted("--model", name, "--interpolation", "bicubic", "--views", 2)[0]
        for name in ("test_resnet", "test_vit")
    ]
    expected = np.hstack([unit(part) for part in parts])
    np.testing.assert_allclose(both, expected, rtol=1e-4, atol=1e-6)
    assert metadata["model"] == ["test_resnet", "test_vit"]
    assert len(set(metadata["weights_sha256"])) == 2
    assert metadata["crop"] == 32


@needs_timm
@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--layers", "99"], "--layers must be in [-"),
        (["--layers", "1", "--pool", "mean"], "--pool"),
        (
            ["--model", "test_resnet", "--model", "test_vit"],
            "--interpolation must be one for all --model",
        ),
    ],
)
def test_layers_and_networks_are_refused_in_one_line(images, network, argv, message):
    status, _, err = network(images, *argv)
    assert status == 1
    assert message in err
    assert err.count("\n") == 1


@needs_timm
def test_files_of_other_views_have_no_overlap(images, network, run, tmp_path):
    for views in (1, 2):
        assert network(images, "--views", views)[0] == 0
        (tmp_path / "out.h5").rename(tmp_path / f"{views}.h5")
    status, _, err = run("overlap", tmp_path / "1.h5", tmp_path / "2.h5")
    assert status == 1
    assert "both files must have the same views, got ['zoom 1'] and" in err
