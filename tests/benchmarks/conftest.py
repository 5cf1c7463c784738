"""The benchmarks are scripts: what they import lies beside them."""

import sys
from pathlib import Path

import joblib
import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path += [str(BENCHMARKS), str(BENCHMARKS / "figures")]

# They guard figures, not fits: slow, but for those that are quick.
QUICK = ("test_cells.py", "test_results.py", "test_processes.py")
QUICK += ("test_backbones.py", "test_defaults.py", "test_refused.py")


def pytest_collection_modifyitems(items):
    """Leave the trials of the scripts to ``make test-slow``."""
    here = Path(__file__).parent
    for item in items:
        if item.path.parent == here and item.path.name not in QUICK:
            item.add_marker("slow")


@pytest.fixture
def write_images(tmp_path):
    """Return what writes a folder of images of two classes in both splits."""
    Image = pytest.importorskip("PIL.Image")

    def write(number, side):
        rng = np.random.default_rng(0)
        for split in ("train", "test"):
            for name, grey in (("a", 10), ("b", 180)):
                folder = tmp_path / "images" / split / name
                folder.mkdir(parents=True)
                for place in range(number):
                    pixels = rng.integers(grey, grey + 60, (side, side, 3))
                    image = Image.fromarray(pixels.astype(np.uint8))
                    image.save(folder / f"{place}.png")
        return tmp_path / "images"

    return write


@pytest.fixture
def images(write_images):
    """Return a folder of eight images of each class."""
    return write_images(8, 4)


@pytest.fixture
def california_home(tmp_path):
    """Return the folder of a stand-in of the file that scikit-learn keeps."""
    rng = np.random.default_rng(0)
    low = [15_000, 0.5, 1, 2, 1, 3, 1, 32, -124]
    high = [500_000, 15, 52, 40_000, 6_000, 35_000, 6_000, 42, -114]
    joblib.dump(rng.uniform(low, high, (40, 9)), tmp_path / "cal_housing_py3.pkz")
    return tmp_path
