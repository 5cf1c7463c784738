"""What is near is so by two rows alone, whatever processor multiplies them."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from privfeat.data import open_features, write_features
from privfeat_extract.similarity import nearest, settled, unit_blocks

# Kernels that OpenBLAS takes by itself on other processors round by place.
KERNELS = ("", "Haswell", "Sandybridge")
COUNTED = """
import json, sys
import numpy as np
from privfeat.data import open_features
from privfeat_extract.similarity import nearest, settled
a, b, threshold = open_features(sys.argv[1]), open_features(sys.argv[2]), sys.argv[3]
found = settled(nearest(a, b)[1], b, a, float(threshold))
print(json.dumps((found.similarity >= float(threshold)).tolist()))
"""


@pytest.fixture
def written(tmp_path):
    """Return a function that writes rows and opens them."""

    def write(name, rows):
        path = tmp_path / f"{name}.h5"
        labels = np.zeros(len(rows), np.int64)
        write_features(path, {"train": (rows.astype(np.float32), labels)})
        return open_features(path)

    return write


def near(a, b, threshold):
    found = settled(nearest(a, b)[1], b, a, threshold)
    return (found.similarity >= threshold).tolist()


def turned(rows, cosine, rng):
    """Return rows of norm one at about this cosine from others."""
    other = rng.normal(size=rows.shape)
    other -= np.sum(other * rows, axis=1)[:, None] * rows
    other /= np.linalg.norm(other, axis=1)[:, None]
    return cosine * rows + np.sqrt(1.0 - cosine**2) * other


@pytest.mark.parametrize("copies", ["exact", "near"])
@pytest.mark.parametrize("n_rows", [1, 8, 60])
def test_one_row_less_changes_no_other(written, copies, n_rows):
    """Rows at the threshold, for which rounding decides."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n_rows, 200))
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    many, threshold = np.resize(rows, (301, 200)), 1.0
    if copies == "near":
        many, threshold = turned(many, 0.95, rng), 0.95
    a = written("a", rows)
    whole = near(a, written("b", many), threshold)
    assert near(a, written("c", many[1:]), threshold) == whole[1:]
    assert near(a, written("d", many[:-1]), threshold) == whole[:-1]
    assert near(a, written("e", many[::-1]), threshold) == whole[::-1]
    assert near(a, written("f", many[::2]), threshold) == whole[::2]
    assert all(whole) if copies == "exact" else any(whole)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
def test_other_kernels_take_the_same_rows(written, kernel):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 129))
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    a, b = (
        written("a", rows),
        written("b", turned(np.resize(rows, (900, 129)), 0.9, rng)),
    )
    command = [sys.executable, "-c", COUNTED, str(a.path), str(b.path), "0.9"]
    environment = os.environ | ({"OPENBLAS_CORETYPE": kernel} if kernel else {})
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == near(a, b, 0.9)


@pytest.mark.filterwarnings("ignore:some rows")  # of zeros
def test_what_is_settled_is_the_best_cosine_of_a_pair(written):
    """By the definition, one pair after another; the first of equal rows counts."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20, 33))
    a = written("a", np.vstack([rows, rows, np.zeros((1, 33))]))
    b = written("b", turned(rows / np.linalg.norm(rows, axis=1)[:, None], 0.8, rng))
    found = settled(nearest(a, b)[1], b, a, 0.8)
    (_, one), (_, two) = next(unit_blocks(a)), next(unit_blocks(b))
    for row, similarity, other in zip(two, found.similarity, found.row, strict=True):
        x = row.astype(np.float64)
        cosines = [
            np.sum(x * y) / np.sqrt(np.sum(x * x) * np.sum(y * y))
            for y in one[:-1].astype(np.float64)
        ]
        assert other == np.argmax(cosines)
        assert similarity == pytest.approx(max(cosines), abs=1e-6)
    none = settled(nearest(a, b)[0], a, b, 0.0)  # a row of zeros is at the threshold
    assert none.similarity[-1] == 0.0
