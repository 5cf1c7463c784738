"""`privfeat train` on HDF5 files with images."""

import h5py
import numpy as np
import pytest

from privfeat import PrivacyLedger, load
from privfeat.data import FeatureFileError
from privfeat.networks import read_folder
from tests.cli.tiny import train_on as command

pytest.importorskip("flax")
pytest.importorskip("PIL.Image")
pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


def write_file(folder, *names, **more):
    """Write the images of the folder as an HDF5 file."""
    path = folder / "images.h5"
    with h5py.File(path, "w") as file:
        for split in names:
            images, labels, classes, _ = read_folder(folder / split, size=8)
            file[f"{split}/images"], file[f"{split}/labels"] = images, labels
        for name, values in ({"class_names": classes} | more).items():
            if values is not None:
                file[name] = values
    return path


@pytest.mark.slow
def test_train_on_a_file_is_that_on_its_folder(folder, capsys):
    path = write_file(folder, "train", "test")
    same = ("--seed", "1", "--batch", "24")
    assert command(folder, *same) == 0
    first = load(folder / "model")
    said = capsys.readouterr().out.replace("test accuracy", "").split(" on ")[0]
    assert command(folder, *same, "--data", str(path), "--overwrite") == 0
    assert said == capsys.readouterr().out.replace("test accuracy", "").split(" on ")[0]
    second = load(folder / "model")
    assert first.privacy_ == second.privacy_
    for name, leaf in first.parameters_.items():
        assert np.array_equal(second.parameters_[name], leaf)


def test_train_refuses_a_file_that_it_cannot_use(folder, capsys):
    path = write_file(folder, "train", class_names=None)
    for more, message in (
        ([], "must hold class_names"),
        (["--restore", "--distributed"], "--restore must run in one process"),
    ):
        assert command(folder, "--data", str(path), *more) == 1
        assert message in capsys.readouterr().err
    path = write_file(folder, "train")
    assert command(folder, "--data", str(path), "--groups", "users.csv") == 1
    assert "--groups must be of the files of a folder" in capsys.readouterr().err


def test_train_asks_what_to_do_with_the_users_of_a_file(folder, capsys, plant):
    users = np.arange(24) // 3
    path = write_file(folder, "train", **{"train/groups": users})
    given = []

    def watched(self, X, y, groups):
        given.append((groups.tolist(), self.max_group_size))
        raise ValueError("enough is seen")

    plant("fit of a network", watched)
    more = ("--data", str(path), "--batch", "4")
    assert command(folder, *more) == 1
    assert "names the user of each image" in capsys.readouterr().err
    assert command(folder, *more, "--max-group-size", "2") == 1
    assert "enough is seen" in capsys.readouterr().err
    assert given == [(users.tolist(), 2)]


def test_train_refuses_a_file_before_the_charge(folder, capsys, plant):
    path = write_file(folder, "train")
    ledger = PrivacyLedger(folder / "l", dataset="x", epsilon=1e4, delta=1e-4)
    charged = ("--ledger", str(folder / "l"), "--dataset", "x")

    def damaged(self, numbers):
        raise FeatureFileError("one is damaged")

    with h5py.File(path, "a") as file:
        file["test/images"], file["test/labels"] = file["train/images"], [0] * 24
    assert command(folder, "--data", str(path), *charged) == 1
    assert "must not hold one dataset as" in capsys.readouterr().err
    with h5py.File(path, "a") as file:
        del file["test"]
    plant("read of images in a file", damaged)
    assert command(folder, "--data", str(path), *charged) == 1
    assert "one is damaged" in capsys.readouterr().err
    assert not ledger.history
