"""Networks trained by real processes: the model of one, noise once, one charge."""

import numpy as np
import pytest

import privfeat
from privfeat.networks import read_folder
from tests.jobs import run_job
from tests.networks import processes

Image = pytest.importorskip("PIL.Image")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning"),
]


@pytest.fixture
def folder(tmp_path):
    """Forty images of two classes."""
    draw = np.random.default_rng(0)
    for name, level in (("bright", 160), ("dark", 20)):
        (tmp_path / "images" / name).mkdir(parents=True)
        for i in range(20):
            pixels = draw.integers(level, level + 60, (10, 12, 3)).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / "images" / name / f"{i}.png")
    return tmp_path


def run(folder, case, size=2):
    statuses, errors = run_job(processes.__file__, folder, case, size=size)
    assert not any(statuses), errors
    return [dict(np.load(folder / f"{index}.npz")) for index in range(size)]


def test_two_processes_train_the_network_of_one_bit_for_bit(folder):
    """From a folder that both read late, with one charge and one set of checkpoints."""
    images = read_folder(folder / "images", size=8)
    alone = processes.results(processes.made().fit(images.images, images.labels))
    ledger = privfeat.PrivacyLedger(folder / "l", dataset="x", epsilon=500, delta=1e-5)
    first, second = run(folder, "shared")
    for name, values in alone.items():
        np.testing.assert_array_equal(first[name], values, err_msg=name)
        np.testing.assert_array_equal(second[name], values, err_msg=name)
    np.testing.assert_array_equal(first["unseeded"], second["unseeded"])
    (charge,) = ledger.history
    assert charge.status == "fitted"
    restored = processes.results(processes.made(folder).restore())
    for name, values in alone.items():
        np.testing.assert_array_equal(restored[name], values, err_msg=name)


def test_two_processes_with_images_of_their_own_sum_all(folder):
    images = read_folder(folder / "images", size=8)
    clf = processes.made(expected_batch_size=None, augmentation="none", n_copies=1)
    alone = processes.results(clf.fit(images.images, images.labels))
    first, second = run(folder, "own")
    for name, values in alone.items():
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)
        if name != "privacy":
            np.testing.assert_allclose(first[name], values, atol=1e-4, err_msg=name)
    assert first["privacy"] == alone["privacy"]


def test_processes_that_would_not_train_one_network_are_refused(folder):
    messages = {
        "clip_norm": "the same fit",
        "batches": "the same devices",
        "targets": "the same rows",
        "images": "the same rows",
        "restore": "restore must run in one process",
        "twice": "every record would count twice",
    }
    for found in run(folder, "refusals"):
        for case, message in messages.items():
            assert message in str(found[case]), case
