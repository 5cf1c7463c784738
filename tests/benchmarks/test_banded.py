"""Banded beside independent noise, on a few images."""

import json

import banded
import pytest

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


def test_both_kinds_of_noise_are_tuned_on_the_same_images(
    images, tmp_path, monkeypatch
):
    out = tmp_path / "banded.json"
    words = [images, "--size", 4, "--records", 16, "--epsilons", 20, "--epochs", 2]
    words += ["--independent", 4, "--banded", 4, "--travels", 1, 2, "--seeds", 2]
    monkeypatch.setattr("sys.argv", ["banded", *map(str, words), "--out", str(out)])
    banded.main()
    cells = json.loads(out.read_text())["cells"]
    kinds = [f"{noise} batch=4 epsilon=20" for noise in ("independent", "banded")]
    assert list(cells) == kinds
    for cell in cells.values():
        assert (len(cell["tuning"]), len(cell["scores"]), cell["steps"]) == (2, 2, 8)


@pytest.mark.parametrize(
    ("accuracy", "found"),
    [(0.4, "below 2"), (0.6, "2.8"), (0.9, "more than was tried")],
)
def test_same_accuracy_is_looked_up_between_the_epsilons(accuracy, found):
    best = {("banded", 2.0): 0.5, ("banded", 4.0): 0.7}
    best |= {("independent", 2.0): accuracy, ("independent", 4.0): 0.7}
    first = banded.same_accuracy(best, [2.0, 4.0]).splitlines()[2]
    assert first.split("|")[3].strip() == found
