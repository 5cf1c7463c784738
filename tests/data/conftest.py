import numpy as np
import pytest

from privfeat.data import FeatureWriter, join_features, write_features


@pytest.fixture
def arrays():
    """Return two splits: features (n, 5) float16 and labels."""
    rng = np.random.default_rng(7)
    return {
        "train": (rng.normal(size=(7, 5)).astype(np.float16), np.arange(7) % 3),
        "test": (rng.normal(size=(4, 5)).astype(np.float16), np.arange(4) % 3),
    }


@pytest.fixture
def feature_file(tmp_path, arrays):
    """Return the path of a small feature file."""
    path = tmp_path / "small.h5"
    write_features(
        path,
        arrays,
        class_names=["cat", "dog", "Zebra é"],
        metadata={"model": "toy", "mean": [0.5, 0.5, 0.5]},
    )
    return path


@pytest.fixture
def begin(tmp_path):
    """Return a function that opens a writer for ``out.h5``."""
    options = {"n_features": 5, "arguments": {"model": "toy"}, "flush_seconds": 0.0}

    def open_writer(**changes):
        return FeatureWriter(tmp_path / "out.h5", **{**options, **changes})

    return open_writer


D = 5
SIZES = {"train": (700, 0, 41), "test": (3, 2, 0)}


@pytest.fixture
def rows():
    """Return features, labels and groups of each split and shard."""
    rng = np.random.default_rng(5)
    return {
        split: [
            (
                rng.normal(size=(n, D)).astype(np.float16),
                rng.integers(3, size=n),
                rng.integers(9, size=n),
            )
            for n in sizes
        ]
        for split, sizes in SIZES.items()
    }


@pytest.fixture
def write_shard(tmp_path, rows):
    """Return a function that writes shard ``number`` and returns its path."""

    def write(number, *, count=3, arguments=(("crop", 16),), shift=0):
        (tmp_path / "shards").mkdir(exist_ok=True)
        path = tmp_path / "shards" / f"{number}.h5"
        with FeatureWriter(path, n_features=D, overwrite=True) as writer:
            for split, parts in rows.items():
                features, labels, groups = parts[number - 1]
                writer.append(
                    split,
                    features + np.float16(shift),
                    labels,
                    groups=groups,
                    skipped=[f"{split}{number}.png"],
                )
            writer.finish(
                {
                    "model": "toy",
                    "arguments": dict(arguments),
                    "shard": {"number": number, "count": count},
                    "host": f"host {number}",
                },
                class_names=["a", "b", "c"],
                split_metadata={split: {"file_list_sha256": "f"} for split in rows},
            )
        return path

    return write


@pytest.fixture
def shards(write_shard):
    return [write_shard(number) for number in (1, 2, 3)]


@pytest.fixture
def joined(tmp_path, shards):
    path = tmp_path / "joined.h5"
    join_features(path, shards)
    return path


def whole(rows, split, column):
    return np.concatenate([part[column] for part in rows[split]])
