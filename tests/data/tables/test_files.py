import traceback

import numpy as np
import pandas as pd
import pytest

from privfeat.data.tables.csv_files import objects_of
from privfeat.data.tables.files import read_schema, table_parts
from privfeat.data.users import named

SECRET = "1234567"


def written(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


def read(path, names):
    parts = list(table_parts(path, names))
    return {name: [v for part in parts for v in part[name].tolist()] for name in names}


def test_csv_is_read_as_texts(tmp_path):
    path = written(tmp_path / "a.CSV", '\ufeffa, b ,c\n1,"x, ""y""",\n\n1.0,NA, é\r\n')
    assert read_schema(path) == {"a": None, "b": None, "c": None}
    found = read(path, ["c", "a", "b"])
    assert found == {"a": ["1", "1.0"], "b": ['x, "y"', "NA"], "c": ["", " é"]}


def test_csv_is_read_in_parts(tmp_path, monkeypatch):
    rows = "".join(f"{i}\n" for i in range(70_000))
    path = written(tmp_path / "a.csv", f"a\n{rows}")
    parts = list(table_parts(path, ["a"]))
    assert [len(part["a"]) for part in parts] == [2**15, 2**15, 70_000 - 2**16]
    assert read(path, ["a"])["a"] == [str(i) for i in range(70_000)]


@pytest.mark.parametrize(
    "text",
    [
        f"a,b\n1,2\n{SECRET}\n",
        f"a,b\n1,2,{SECRET}\n",
        f'a,b\n1,"{SECRET}"x\n',
        f'a,b\n1,"{SECRET}',
        f"a,b\n1,{SECRET}\xe9\n",
        f"a,b\n1,{SECRET * 50_000}\n",
    ],
)
def test_csv_that_is_damaged_is_refused_without_a_value(tmp_path, text):
    path = written(tmp_path / "a.csv", text, "latin-1")
    with pytest.raises(ValueError, match="must be a table in UTF-8, separated") as e:
        read(path, ["a"])
    assert SECRET not in str(e.value)
    assert e.value.__context__ is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "with the names of the columns in its first line"),
        ("a;b\n1;2\n", "its first line is by semicolons. Save it with commas"),
        ("a\tb\n1\t2\n", "its first line is by tabs"),
        ("a,b,a\n1,2,3\n", r"once, but columns \[1, 3\] have one name"),
    ],
)
def test_csv_without_names_is_refused(tmp_path, text, words):
    with pytest.raises(ValueError, match=words):
        read_schema(written(tmp_path / "a.csv", text))


def test_arrays_are_columns(tmp_path):
    path = tmp_path / "a.npz"
    days = np.array(["2020-01-01", "NaT"], "datetime64[D]")
    arrays = {
        "X": np.eye(2),
        "n": np.arange(2, dtype=np.uint8),
        "b": np.array([True, False]),
        "t": np.array(["x", "y"]),
        "d": days,
    }
    np.savez(path, **arrays)
    assert read_schema(path) == {
        **{"X0": "numeric", "X1": "numeric", "n": "integer", "b": "boolean"},
        **{"t": None, "d": "date"},
    }
    (part,) = table_parts(path, ["X1", "t"])
    assert part["X1"].tolist() == [0, 1]
    assert part["t"].tolist() == ["x", "y"]


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"a": np.array([SECRET, None])}, "of one or two dimensions and of no objects"),
        ({"a": np.zeros((1, 1, 1))}, "of one or two dimensions"),
        ({"a": np.zeros(()), "b": np.zeros(1)}, "of one or two dimensions"),
        ({"a": np.zeros(1), "b": np.zeros(2)}, "must have columns of one length"),
    ],
)
def test_arrays_that_are_no_columns_are_refused(tmp_path, arrays, words):
    path = tmp_path / "a.npz"
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match=words):
        read(path, ["a"])


@pytest.mark.parametrize("name", ["a.npz", "a.parquet", "a.arrow"])
@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 nothing", b"no table"])
def test_files_of_another_format_are_refused(tmp_path, name, content):
    if not name.endswith("npz"):
        pytest.importorskip("pyarrow")
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"must (hold NumPy arrays|be a file of Parq)"):
        read_schema(path)


@pytest.fixture(params=["parquet", "arrow", "feather"])
def arrow(request, tmp_path):
    """Return a file of Parquet or Arrow with every type that is read."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    table = pa.table(
        {
            "f": pa.array([0.5, None]),
            "i": pa.array([2**53 + 1, None]),
            "whole": pa.array([1, 2], pa.int8()),
            "b": pa.array([True, None]),
            "c": pa.array(["x", None]).dictionary_encode(),
            "s": pa.array([None, "y"]),
            "day": pa.array([1, None], pa.date32()),
            "time": pa.array([0, None], pa.timestamp("ms", tz="Europe/Berlin")),
            "m": pa.array([1, None], pa.decimal128(5, 2)),
        }
    )
    path = tmp_path / f"a.{request.param}"
    (parquet.write_table if request.param == "parquet" else feather.write_feather)(
        table, path
    )
    return path


def test_columns_of_arrow_have_kinds_by_their_types(arrow):
    assert read_schema(arrow) == {
        **{"f": "numeric", "i": "integer", "whole": "integer", "b": "boolean"},
        **{"c": "category", "s": None, "day": "date", "time": "date", "m": "numeric"},
    }


def test_columns_of_arrow_are_read_as_they_stand(arrow):
    (part,) = table_parts(arrow, list(read_schema(arrow)))
    assert part["i"].tolist() == [2**53 + 1, None]
    assert part["whole"].dtype == np.int8
    assert part["b"].tolist() == [True, None]
    assert part["c"].tolist() == ["x", None]
    assert part["s"].tolist() == [None, "y"]
    assert part["f"][0] == 0.5
    assert np.isnan(part["f"][1])
    assert str(part["day"][0]) == "1970-01-02"
    assert part["time"][0] == np.datetime64(0, "s")
    assert np.isnat(part["time"][1])
    assert float(part["m"][0]) == 1
    assert part["m"][1] is None


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_text_of_arrow_that_is_no_utf_8_is_refused_without_a_value(tmp_path, kind):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    raw = [b"flu", f"M\u00fcller-{SECRET}".encode("latin-1")]
    starts = np.cumsum([0, *map(len, raw)]).astype(np.int32)
    buffers = [None, *map(pyarrow.py_buffer, (starts.tobytes(), b"".join(raw)))]
    texts = pyarrow.Array.from_buffers(pyarrow.string(), len(raw), buffers)
    path = tmp_path / f"a.{kind}"
    write = parquet.write_table if kind == "parquet" else feather.write_feather
    write(pyarrow.table({"a": texts}), path)
    with pytest.raises(ValueError, match="text in UTF-8") as caught:
        read(path, ["a"])
    shown = "".join(traceback.format_exception(caught.value))
    assert SECRET not in shown


def test_csv_with_a_line_break_in_a_value_is_refused(tmp_path):
    """A quote that nobody closed would swallow the records after it."""
    path = written(tmp_path / "a.csv", 'a,b\n1,x\n2,"y\n3,z\n4,v"\n5,w\n')
    with pytest.raises(ValueError, match="none of them with a line break"):
        read(path, ["a", "b"])


@pytest.mark.parametrize("header", ["34,flu,1", "a,,b", "a,1e5"])
def test_csv_whose_first_line_is_a_record_is_refused(tmp_path, header):
    path = written(tmp_path / "a.csv", f"{header}\n2,x,3\n")
    with pytest.raises(ValueError, match="names of its columns") as caught:
        read_schema(path)
    assert "flu" not in str(caught.value)


def test_arrays_that_name_a_column_twice_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.zeros((3, 2)), x0=np.ones(3))
    with pytest.raises(ValueError, match="each column once"):
        read_schema(tmp_path / "a.npz")


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
@pytest.mark.parametrize("others", [[], [None]])
def test_long_whole_numbers_of_pandas_may_be_rounded(tmp_path, suffix, others):
    """A reader made floats of the column, if a record had 5.0, and then again these."""
    import pyarrow

    path, long = tmp_path / f"a.{suffix}", 2**53 + 1
    frame = pd.DataFrame({"a": pd.array([7, long, *others], "Int64")})
    getattr(frame, f"to_{suffix}")(path)
    (part,) = table_parts(path, ["a"], exact=True)
    assert part["a"].tolist() == [7, long, *others]
    with pytest.raises(ValueError, match="may have rounded"):
        named(objects_of(read(path, ["a"])["a"]))
    table = pyarrow.table({"a": [7, long]})
    if suffix == "parquet":
        pyarrow.parquet.write_table(table, path)
    else:
        pyarrow.feather.write_feather(table, path)
    assert named(objects_of(read(path, ["a"])["a"])).tolist() == [7, long]


def test_a_name_may_have_a_comma(tmp_path):
    path = written(tmp_path / "a.csv", '"dose, mg"\n1\n')
    assert read(path, list(read_schema(path))) == {"dose, mg": ["1"]}
