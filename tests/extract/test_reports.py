import numpy as np
import pytest

from privfeat.data import open_features

Image = pytest.importorskip("PIL.Image")


def test_an_empty_class_folder_is_a_class_and_reported(images, scatter, tmp_path):
    (images / "train" / "cow").mkdir()
    (images / "train" / ".cache").mkdir()
    status, _, err = scatter(images)
    assert status == 0
    assert "warning: split 'train' has no row of class 'cow'." in err
    file = open_features(tmp_path / "out.h5")
    assert file.class_names == ("cat", "cow", "dog")
    assert sorted(set(file["train"].y)) == [0, 2]


def test_a_shard_of_another_number_of_processes_is_reported(
    images, scatter, tmp_path, monkeypatch
):
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert scatter(images)[0] == 0
    monkeypatch.setenv("WORLD_SIZE", "2")
    for number, told in (("1", False), ("0", True)):
        monkeypatch.setenv("RANK", number)
        status, _, err = scatter(images)
        assert status == 0
        assert ("00004-of-00004.h5 is not used" in err) == told
    assert len(open_features(tmp_path / "out.h5")["train"]) == 10


def test_sixteen_bits_and_orientation_reach_the_features(images, scatter, tmp_path):
    """A ramp of 16 bits that lies on its side gives the features of its 8-bit twin."""
    ramp = np.tile(np.arange(16, dtype=np.uint16) * 17, (16, 1))
    exif = Image.Exif()
    exif[0x0112] = 6
    for kind, picture, more in (
        ("cat", Image.fromarray(ramp.astype(np.uint8)), {}),
        ("dog", Image.fromarray(np.rot90(ramp * 257).copy()), {"exif": exif}),
    ):
        for path in (images / "train" / kind).iterdir():
            picture.save(path, **more)
    assert scatter(images, "--splits", "train")[0] == 0
    rows = open_features(tmp_path / "out.h5")["train"].X[:]
    np.testing.assert_array_equal(rows[:5], rows[5:])
    assert rows.std() > 0.01


def test_zero_rows_are_reported_in_one_line(images, scatter):
    Image.new("L", (20, 20)).save(images / "test" / "dog" / "0.png")
    status, _, err = scatter(images)
    assert status == 0
    assert "privfeat-extract: warning: some rows of split 'test' are all zeros" in err
