import shutil

import h5py
import numpy as np
import pytest

from privfeat.data import FeatureFileError
from privfeat.data.writing.writer import Position
from tests.data.rows import whole_file, write_rows


@pytest.mark.parametrize("stop", range(7))
def test_feature_writer_continues_after_an_interruption(begin, arrays, tmp_path, stop):
    expected = whole_file(begin, arrays, tmp_path)
    with begin() as writer:
        write_rows(writer, arrays, stop=stop)
    assert not writer.path.exists()
    with begin() as writer:
        assert writer.resumed == (stop > 0)
        write_rows(writer, arrays)
        writer.finish({"model": "toy"})
    assert writer.path.read_bytes() == expected
    assert [path.name for path in tmp_path.iterdir()] == ["out.h5"]


def test_feature_writer_continues_from_any_of_its_parts(begin, arrays, tmp_path):
    """A kill leaves the first parts, and a file that is half written."""
    expected = whole_file(begin, arrays, tmp_path)
    with begin() as writer:
        write_rows(writer, arrays)
    kept = tmp_path / "kept"
    shutil.copytree(writer.partial, kept)
    names = sorted(path.name for path in kept.glob("*.h5"))
    assert len(names) == 6
    for n_kept in range(7):
        shutil.rmtree(writer.partial, ignore_errors=True)
        shutil.copytree(kept, writer.partial)
        for name in names[n_kept:]:
            (writer.partial / name).unlink()
        for torn in (f".00000{n_kept}.h5.tmp", "assembled.h5"):
            (writer.partial / torn).write_bytes(b"torn")
        with begin() as writer:
            found = sum(writer.position(split).n_rows for split in arrays)
            assert found == [0, 2, 4, 6, 7, 9, 11][n_kept]
            write_rows(writer, arrays)
            writer.finish({"model": "toy"})
        assert writer.path.read_bytes() == expected
        writer.path.unlink()


def test_feature_writer_gives_the_same_bytes_whatever_its_parts(begin, tmp_path, plant):
    """Blocks of 3 rows, which parts do not end with."""
    plant("bytes of a block", 3 * 5 * 2)
    rng = np.random.default_rng(0)
    arrays = {"train": (rng.normal(size=(17, 5)), rng.integers(3, size=17))}
    found = []
    for part_rows, step, n_parts in ((1, 17, 1), (2, 5, 4), (4, 2, 3), (100, 1, 1)):
        plant("bytes of a part", part_rows * (5 * 2 + 8))
        with begin(flush_seconds=100.0) as writer:
            write_rows(writer, arrays, step=step)
            writer.flush()
            assert len(list(writer.partial.glob("*.h5"))) == n_parts
            writer.finish()
        found.append(writer.path.read_bytes())
        writer.path.unlink()
    assert len(set(found)) == 1


@pytest.mark.parametrize("damage", ["change", "shorten", "remove", "exchange"])
def test_feature_writer_refuses_damaged_rows(begin, arrays, damage):
    with begin() as writer:
        write_rows(writer, arrays, stop=3)
    part, other = (writer.partial / f"00000{i}.h5" for i in (1, 2))
    data = part.read_bytes()
    if damage == "remove":
        part.unlink()
    elif damage == "shorten":
        part.write_bytes(data[:-1])
    elif damage == "exchange":
        part.write_bytes(other.read_bytes())
        other.write_bytes(data)
    else:
        with h5py.File(part, "r+") as file:
            file["features"][0, 1] += 1
    with pytest.raises(FeatureFileError, match="must hold the rows that"):
        begin()
    with begin(overwrite=True) as writer:
        assert writer.position("train") == Position(0, 0)


def test_feature_writer_refuses_a_part_of_another_run(begin, arrays):
    for model in ("toy", "big"):
        with begin(arguments={"model": model}, overwrite=True) as writer:
            write_rows(writer, arrays, stop=2)
        if model == "toy":
            shutil.copy(writer.partial / "000001.h5", writer.path)
    shutil.move(writer.path, writer.partial / "000001.h5")
    with pytest.raises(FeatureFileError, match="model was 'toy' and is 'big'"):
        begin(arguments={"model": "big"})
