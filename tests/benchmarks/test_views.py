"""Views of images: the whole script, on a few images and a small network."""

import json
import shutil

import pytest


@pytest.mark.slow
def test_policies_poolings_and_layers_are_measured(tmp_path, monkeypatch):
    timm = pytest.importorskip("timm")
    import views
    from PIL import Image
    from safetensors.torch import save_file

    for number in range(24):
        image = tmp_path / "images" / "train" / "ab"[number % 2] / f"{number}.png"
        image.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (32, 32), (10 * number, 0, 200)).save(image)
    network = timm.create_model("test_resnet", num_classes=0)
    save_file(network.state_dict(), tmp_path / "weights.safetensors")
    out = tmp_path / "views.json"
    given = f"test_resnet={tmp_path / 'weights.safetensors'}"
    sizes = ("--crop", "32", "--step", "2", "--epsilons", "8", "--repeats", "2")
    kept = ("--features", str(tmp_path / "kept"), "--out", str(out))
    images = shutil.make_archive(str(tmp_path / "images"), "tar", tmp_path / "images")
    line = ["views", images, "--network", given, *sizes, *kept, "--parts", "--baseline"]
    monkeypatch.setattr("sys.argv", line)
    views.main()
    table = json.loads(out.read_text())["tables"]["test_resnet"]
    assert [row[0] for row in table["rows"]] == [
        *views.POLICIES,
        "--pool max",
        "--pool avgmax",
        "--pool catavgmax",
        "--layers -1 output",
    ]
    assert len(list((tmp_path / "kept").iterdir())) == 6
