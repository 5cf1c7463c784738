import shutil
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

import numpy as np
import pytest

from privfeat.data import open_features


def read_train(path):
    train = open_features(path)["train"]
    return train.X[:], train.y, train.metadata["n_rows"]


@pytest.mark.parametrize("kind", ["zip", "tar", "gztar", "bztar", "xztar"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_archive_gives_the_features_of_its_folder(
    images, scatter, tmp_path, kind, wrapped
):
    assert scatter(images)[0] == 0
    expected = read_train(tmp_path / "out.h5")
    place = {"root_dir": images}
    if wrapped:
        place = {"root_dir": images.parent, "base_dir": images.name}
    archive = shutil.make_archive(str(tmp_path / "packed"), kind, **place)
    status, _, err = scatter(archive, "--overwrite")
    assert status == 0, err
    for found, wanted in zip(read_train(tmp_path / "out.h5"), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert not (tmp_path / "out.h5.partial").exists()


@pytest.mark.parametrize("kind", ["zip", "tar", "gztar", "xztar"])
def test_archive_that_is_truncated_is_refused(images, scatter, tmp_path, kind):
    archive = shutil.make_archive(str(tmp_path / "packed"), kind, images)
    with open(archive, "r+b") as file:
        file.truncate(file.seek(0, 2) // 2)
    status, _, err = scatter(archive)
    assert status == 1
    assert err.count("\n") == 1
    assert "is damaged or of another kind" in err
    assert not list(tmp_path.glob("out*"))


def test_archive_of_another_kind_is_refused(scatter, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("hello")
    status, _, err = scatter(path)
    assert status == 1
    assert "must be a folder or a tar or zip archive" in err


def test_second_name_of_an_image_is_an_image(images, scatter, tmp_path):
    first = min(images.rglob("*.png"))
    first.with_name("zz.png").hardlink_to(first)
    assert scatter(images)[0] == 0
    expected = read_train(tmp_path / "out.h5")
    archive = shutil.make_archive(str(tmp_path / "packed"), "gztar", images)
    status, _, err = scatter(archive, "--overwrite")
    assert status == 0, err
    assert "are one image: it counts under each name" in err
    for found, wanted in zip(read_train(tmp_path / "out.h5"), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_archive_with_another_one_at_its_end_is_read_itself(images, scatter, tmp_path):
    """The images of the other one were taken for all."""
    assert scatter(images)[0] == 0
    expected = read_train(tmp_path / "out.h5")
    with zipfile.ZipFile(images / "zz.zip", "w") as other:
        other.write(min(images.rglob("*.png")), "train/a/1.png")
    archive = shutil.make_archive(str(tmp_path / "packed"), "tar", images)
    status, _, err = scatter(archive, "--overwrite")
    assert status == 0, err
    for found, wanted in zip(read_train(tmp_path / "out.h5"), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    "fault", ["bit", "header", "end", "appended", "sparse", "link", "folder"]
)
def test_archive_whose_files_are_not_whole_is_refused(images, scatter, tmp_path, fault):
    """Rows behind the damage were left out, or held the bytes of their neighbours."""
    archive = shutil.make_archive(str(tmp_path / "packed"), "tar", images)
    with tarfile.open(archive) as members:
        files = [member for member in members if member.isreg()]
        place, end = files[len(files) // 2].offset, members.offset
    packed = bytearray(Path(archive).read_bytes())
    if fault == "bit":
        packed[place + 150] ^= 1  # in the sum that the header has of itself
    elif fault == "header":
        del packed[place + 100 :]
    elif fault == "end":
        del packed[end:]
    elif fault == "appended":
        packed = packed + packed
    Path(archive).write_bytes(packed)
    if fault in ("sparse", "link", "folder"):
        extra = tarfile.TarInfo("train/zz" if fault == "folder" else "train/a/zz.png")
        extra.type = tarfile.GNUTYPE_SPARSE if fault == "sparse" else tarfile.SYMTYPE
        extra.linkname = "1.png"
        with tarfile.open(archive, "a", format=tarfile.GNU_FORMAT) as members:
            members.addfile(extra)
    status, _, err = scatter(archive)
    assert status == 1
    assert "is damaged or of another kind" in err
    assert not list(tmp_path.glob("out*"))


def test_two_zip_archives_in_one_file_are_refused(images, scatter, tmp_path):
    """The last one alone was read."""
    archive = Path(shutil.make_archive(str(tmp_path / "packed"), "zip", images))
    archive.write_bytes(archive.read_bytes() * 2)
    status, _, err = scatter(archive)
    assert status == 1
    assert "another archive stands before it" in err


@pytest.mark.parametrize("other", ["./{}", "{0.parent}//{0.name}"])
def test_zip_archive_that_writes_one_name_in_two_ways_is_refused(
    images, scatter, tmp_path, other
):
    """Two records were made of one."""
    path = Path(shutil.make_archive(str(tmp_path / "pack"), "zip", images))
    with zipfile.ZipFile(path, "a") as archive:
        named = next(n for n in archive.namelist() if n.endswith(".png"))
        archive.writestr(other.format(PurePosixPath(named)), archive.read(named))
    status, _, err = scatter(path)
    assert status == 1
    assert "must name each image once" in err


def test_second_name_of_nothing_is_refused(scatter, tmp_path):
    path = tmp_path / "packed.tar"
    with tarfile.open(path, "w") as archive:
        link = tarfile.TarInfo("train/cat/1.png")
        link.type, link.linkname = tarfile.LNKTYPE, "train/cat/0.png"
        archive.addfile(link)
    status, _, err = scatter(path)
    assert status == 1
    assert "a link leads nowhere" in err


@pytest.mark.slow
def test_archive_is_read_by_worker_processes(images, network, tmp_path):
    archive = shutil.make_archive(str(tmp_path / "packed"), "xztar", images)
    assert network(images)[0] == 0
    expected = read_train(tmp_path / "out.h5")[0]
    assert network(archive, "--overwrite", "--workers", 2)[0] == 0
    np.testing.assert_array_equal(read_train(tmp_path / "out.h5")[0], expected)
