"""A data frame of a file: no value depends on what another record holds."""

import traceback

import numpy as np
import pandas as pd
import pytest

from privfeat import PublicColumns
from privfeat.data import read_table
from privfeat.data.tables.files import read_schema, table_parts

SECRET = "1234567"
LINES = ["007,3,2026-03-04,yes", "9007199254740993,0.1,03/04/2026,TRUE"]
# what makes `pandas.read_csv` read the lines above otherwise
WORDS = ["n/a,?,NA,NULL", ",,,", "5.0,1e5,x,1", "x1,None,13/01/2026,no", '"a,b",3,,""']


def written(path, *lines, encoding="utf-8"):
    path.write_bytes("\n".join([*lines, ""]).encode(encoding))
    return path


@pytest.mark.parametrize("word", WORDS)
def test_a_record_changes_no_other(tmp_path, word):
    header = "code,dose,day,smoker"
    alone = read_table(written(tmp_path / "a.csv", header, *LINES))
    assert alone.to_numpy().tolist() == [line.split(",") for line in LINES]
    beside = read_table(written(tmp_path / "b.csv", header, *LINES, word))
    pd.testing.assert_frame_equal(beside.iloc[:-1], alone)
    first = read_table(written(tmp_path / "c.csv", header, word, *LINES))
    pd.testing.assert_frame_equal(first.iloc[1:].reset_index(drop=True), alone)
    read = pd.read_csv(tmp_path / "b.csv").iloc[:-1]
    assert not read.equals(pd.read_csv(tmp_path / "a.csv"))


def test_files_of_spreadsheets_are_read_as_they_say(tmp_path):
    path = written(tmp_path / "a.csv", "Größe;dose", "1,5;ä", encoding="cp1252")
    read = read_table(path, delimiter=";", encoding="cp1252")
    assert read.to_dict("list") == {"Größe": ["1,5"], "dose": ["ä"]}
    with pytest.raises(ValueError, match="table in UTF-8, separated by semicolons"):
        read_table(path, delimiter=";")
    path = written(tmp_path / "b.csv", "a,b", "1,2", encoding="utf-8-sig")
    for encoding in ("UTF-8", "utf_8", "utf-8-sig"):
        read = read_table(path, encoding=encoding)
        assert read.to_dict("list") == {"a": ["1"], "b": ["2"]}
    with pytest.raises(ValueError, match="by semicolons, but its first line is by com"):
        read_table(path, delimiter=";")
    for delimiter in (";;", '"', "\n", ""):
        with pytest.raises(ValueError, match="delimiter must be one character"):
            read_table(path, delimiter=delimiter)
    with pytest.raises(TypeError, match="delimiter must be a text"):
        read_table(path, delimiter=None)
    for encoding in ("ansi", "hex"):
        with pytest.raises(ValueError, match="encoding must be one of Python's for"):
            read_table(path, encoding=encoding)


@pytest.mark.parametrize("encoding", ["iso2022_jp", "ISO-2022-JP-2", "utf-7", "hz"])
def test_no_line_changes_how_others_are_read(tmp_path, encoding):
    """After ESC ( J in one record ``~`` was another sign in all later ones."""
    path = tmp_path / "a.csv"
    path.write_bytes(b"a,b\n\x1b(J1,2\n~,4\n")
    with pytest.raises(ValueError, match="no line changes how others are read"):
        read_table(path, encoding=encoding)


@pytest.mark.parametrize("encoding", ["shift_jis", "euc_jp", "gb18030", "utf-16"])
def test_encodings_of_many_bytes_are_read(tmp_path, encoding):
    path = written(tmp_path / "a.csv", "a,b", "\u65e5\u672c,2", encoding=encoding)
    assert read_table(path, encoding=encoding)["a"].tolist() == ["\u65e5\u672c"]


@pytest.mark.parametrize(
    "lines",
    [
        ["a,b", "1,2", SECRET],
        ["a,b", "1,2", f"1,2,{SECRET}"],
        ["a,b", f'1,"{SECRET}'],
        ["a,b", f'1,"{SECRET}\n"'],
        [f"{SECRET},b", "1,2"],
        [f"{SECRET}x,{SECRET}x", "1,2"],
    ],
)
def test_what_is_no_table_is_refused_without_a_value(tmp_path, lines):
    with pytest.raises(ValueError, match="must") as e:
        read_table(written(tmp_path / "a.csv", *lines))
    assert SECRET not in "".join(traceback.format_exception(e.value))


def test_named_columns_are_read_in_their_order(tmp_path):
    path = written(tmp_path / "a.csv", "a,b,c", "1,2,3")
    assert read_table(path, ["c", "a"]).to_dict("list") == {"c": ["3"], "a": ["1"]}
    headless = written(tmp_path / "b.csv", f"Ann,{SECRET}x", "Bob,y")
    with pytest.raises(ValueError, match=r"got none of the name \['name'\]") as e:
        read_table(headless, ["name"])
    assert SECRET not in str(e.value)
    with pytest.raises(ValueError, match="got one twice"):
        read_table(path, ["a", "a"])
    with pytest.raises(TypeError, match="columns must be one-dimensional"):
        read_table(path, "abc")


def test_files_of_other_names_are_refused(tmp_path):
    path = written(tmp_path / "a.tsv", "a\tb", "1\t2")
    with pytest.raises(ValueError, match="path must end in one of"):
        read_table(path, delimiter="\t")


def test_dates_that_pandas_cannot_hold_are_refused_without_a_value(tmp_path):
    np.savez(tmp_path / "a.npz", day=np.array([2**50], "M8[D]"))
    with pytest.raises(ValueError) as e:  # noqa: PT011 - its words are without_data's
        read_table(tmp_path / "a.npz")
    assert "2026" not in str(e.value)
    assert str(2**50) not in str(e.value)
    assert e.value.__context__ is None


def test_a_table_without_records_has_its_columns(tmp_path):
    read = read_table(written(tmp_path / "a.csv", "a,b"))
    assert list(read.columns) == ["a", "b"]
    assert len(read) == 0
    pd.DataFrame({"a": [1]}).iloc[:0].to_parquet(tmp_path / "a.parquet")
    assert read_table(tmp_path / "a.parquet").shape == (0, 1)


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_a_gap_changes_no_type(tmp_path, suffix):
    """Pandas makes floats of the whole numbers beside it."""
    import pyarrow as pa
    from pyarrow import feather, parquet

    def read(values):
        columns = {
            "n": pa.array(values, pa.int64()),
            "s": pa.array(["x"] * len(values)).dictionary_encode(),
        }
        path = tmp_path / f"a.{suffix}"
        write = parquet.write_table if suffix == "parquet" else feather.write_feather
        write(pa.table(columns), path)
        return read_table(path)

    long = 2**60 + 1
    beside, alone = read([1, long, None]), read([1, long])
    pd.testing.assert_frame_equal(beside.iloc[:-1], alone)
    assert alone["n"].tolist() == [1, long]
    assert alone["s"].tolist() == ["x", "x"]


def test_an_index_of_pandas_is_a_column(tmp_path):
    frame = pd.DataFrame({"a": [1, 2]}, index=pd.Index([5, 6], name="person"))
    frame.to_parquet(tmp_path / "a.parquet")
    read = read_table(tmp_path / "a.parquet")
    assert read.to_dict("list") == {"a": [1, 2], "person": [5, 6]}
    assert read.index.tolist() == [0, 1]


def test_a_damaged_file_of_arrow_is_refused_without_a_value(tmp_path):
    path = tmp_path / "a.parquet"
    pd.DataFrame({"a": [SECRET] * 9}).to_parquet(path, compression=None)
    kept = path.read_bytes()
    path.write_bytes(kept.replace(SECRET.encode(), b"\xff" * len(SECRET)))
    for read in (read_table, lambda path: list(table_parts(path, ["a"]))):
        with pytest.raises(ValueError, match="text in UTF-8") as e:
            read(path)
        assert e.value.__context__ is None


def test_arrays_are_columns(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.eye(2), y=np.array(["p", "q"]))
    read = read_table(tmp_path / "a.npz", ["y", "X1"])
    assert read.to_dict("list") == {"y": ["p", "q"], "X1": [0.0, 1.0]}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_columns_are_those_of_the_commands(tmp_path, suffix):
    declared = {
        "age": {"kind": "integer", "bounds": [0, 100], "missing": "indicator"},
        "day": {"kind": "date", "bounds": ["2020-01-01", "2026-12-31"]},
        "code": {"kind": "category", "categories": ["7", "8"], "unseen": "neutral"},
        "smoker": {"kind": "boolean", "missing": "neutral"},
    }
    days = pd.to_datetime(["2026-01-02", "2021-03-04"], format="%Y-%m-%d")
    frame = pd.DataFrame(
        {
            "age": pd.array([50, None], "Int64"),
            "day": days if suffix == "parquet" else days.strftime("%Y-%m-%d"),
            "code": pd.Categorical(["7", "9"]),
            "smoker": pd.array([True, None], "boolean"),
        }
    )
    path = tmp_path / f"a.{suffix}"
    (frame.to_parquet if suffix == "parquet" else frame.to_csv)(path, index=False)
    (part,) = table_parts(path, list(read_schema(path)))
    columns = PublicColumns(declared)
    by_commands = columns.fit_transform(pd.DataFrame(part))
    assert np.array_equal(columns.fit_transform(read_table(path)), by_commands)


def test_errors_name_what_reads_the_file(tmp_path):
    path = written(tmp_path / "a.csv", "dose;unit", "1,5;mg")
    with pytest.raises(ValueError, match=r"read_table\(path, delimiter=';'\)"):
        read_table(path)
    path = written(tmp_path / "b.csv", "dose", "\u00e4", encoding="cp1252")
    with pytest.raises(ValueError, match='delimiter=";", encoding="cp1252"'):
        read_table(path)
    with pytest.raises(ValueError, match=r"with a line break. Save it so\.$"):
        read_table(written(tmp_path / "b.csv", "a;b", "1"), delimiter=";")
    path = tmp_path / "c.csv"
    pd.DataFrame({"a": ["x"]}).to_csv(path)
    with pytest.raises(ValueError, match="pass index=False to to_csv"):
        read_table(path)


def test_long_categories_of_a_table_of_arrow_that_pandas_wrote_are_refused(tmp_path):
    from pyarrow import parquet

    long = 2**53 + 1
    columns = {"code": {"kind": "category", "categories": [str(long), "5"]}}
    frame = pd.DataFrame({"code": pd.array([long, 5], "Int64")})
    frame.to_parquet(tmp_path / "a.parquet")
    table = parquet.read_table(tmp_path / "a.parquet")
    with pytest.raises(TypeError, match="and more, as texts"):
        PublicColumns(columns).fit_transform(table)
    made = PublicColumns(columns).fit_transform(table.replace_schema_metadata())
    assert made.tolist() == [[1, 0], [0, 1]]


def test_texts_of_every_type_of_arrow_are_texts(tmp_path):
    import pyarrow as pa
    from pyarrow import feather

    texts = {
        str(of): pa.array(["x", None], of)
        for of in (pa.string(), pa.large_string(), pa.string_view())
    }
    feather.write_feather(pa.table(texts), tmp_path / "a.arrow")
    how = {"kind": "category", "categories": ["x", "y"], "missing": "indicator"}
    read = read_table(tmp_path / "a.arrow")
    made = PublicColumns(dict.fromkeys(texts, how)).fit_transform(read)
    assert made.tolist() == [[1, 0, 0] * 3, [0, 0, 1] * 3]
