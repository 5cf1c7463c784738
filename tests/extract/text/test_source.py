import numpy as np
import pytest

from privfeat.data import open_features
from privfeat_extract.text.source import BadTextError, TextRows

SECRET = "my neighbour Joe"


def test_texts_become_a_file_with_classes_and_users(reviews, extract, tmp_path):
    status, out, err = extract(reviews, "--users", "who")
    assert (status, err) == (0, "")
    assert "6 rows of 4096 features (train 4, classes 2); 6 texts in" in out
    file = open_features(tmp_path / "out.h5")
    assert file.class_names == ("good", "bad")
    assert file["train"].y.tolist() == [0, 1, 0, 1]
    assert file["train"].groups.tolist() == [0, 1, 0, 2]
    assert file["classes"].y.tolist() == [0, 1]
    assert file["classes"].groups is None
    assert file.origin["dataset"] == "reviews.csv"
    assert "max_length" not in file.origin


def test_a_folder_of_tables_has_a_split_for_each(table, extract, tmp_path):
    table(("good film", "good", "a"), name="all/train.csv")
    table(("bad film", "bad", "a"), name="all/test.csv")
    folder = table(name="all/notes.csv").parent
    assert extract(folder)[0] == 0
    file = open_features(tmp_path / "out.h5")
    assert set(file) == {"train", "test", "classes"}
    assert extract(folder, "--splits", "test", "--overwrite")[0] == 0
    assert set(open_features(tmp_path / "out.h5")) == {"test", "classes"}


def test_parquet_gives_what_csv_gives(reviews, extract, tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pandas.read_csv(reviews).to_parquet(tmp_path / "reviews.parquet")
    found = []
    for path in (reviews, tmp_path / "reviews.parquet"):
        assert extract(path, "--overwrite")[0] == 0
        with open_features(tmp_path / "out.h5") as file:
            found.append((file["train"].X[:], file["train"].y.tolist()))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]


def test_whole_numbers_are_labels(tmp_path, extract):
    np.savez(tmp_path / "r.npz", review=np.array(["a b", "c d"]), verdict=[1, 0])
    assert extract(tmp_path / "r.npz", "--class-names", "0", "1")[0] == 0
    assert open_features(tmp_path / "out.h5")["train"].y.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("known", "given"),
    [("1", "01"), ("1", "1.0"), ("01", "1"), ("True", "TRUE"), ("1", "0x1")],
)
def test_a_class_is_written_as_it_is_declared(tmp_path, extract, known, given):
    """A reader makes 1 of 01 unless one row has a word, which decided for all."""
    np.savez(tmp_path / "r.npz", review=np.array(["a b", "c d"]), verdict=["x", given])
    status, _, err = extract(
        tmp_path / "r.npz", "--class-names", "x", known, "--skip-bad"
    )
    assert (status, "written alike, got another, or none, in row 2" in err) == (1, True)


def test_a_missing_label_is_no_class(tmp_path, extract):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"review": ["a b", "c d"], "verdict": ["None", None]})
    frame.to_parquet(tmp_path / "r.parquet")
    names = ("--class-names", "None", "nan")
    assert extract(tmp_path / "r.parquet", *names)[0] == 1
    assert extract(tmp_path / "r.parquet", *names, "--skip-bad")[0] == 1
    frame.dropna().to_parquet(tmp_path / "r.parquet")
    assert extract(tmp_path / "r.parquet", *names)[0] == 0
    assert open_features(tmp_path / "out.h5")["train"].y.tolist() == [0]


def test_a_text_that_is_not_in_utf8_is_refused(tmp_path, extract):
    texts = np.array(["a b", "c \ud800"])
    np.savez(tmp_path / "r.npz", review=texts, verdict=["good", "bad"])
    status, _, err = extract(tmp_path / "r.npz")
    assert status == 1
    assert "text 2 of split 'train' cannot be used (it is no text in UTF-8)" in err


def test_texts_without_labels_are_predicted(reviews, extract, run, tmp_path):
    """As those of the table with labels are; nothing can be fitted to them."""
    from privfeat.cli import main

    small = ("--model-kwargs", "n_features=32")
    argv = ("--data", reviews, "--text", "review", "--model", "ngrams", *small)
    fitted, new = tmp_path / "out.h5", tmp_path / "new.h5"
    assert run(*argv, "--out", new, "--dtype", "float32")[0] == 0
    file = open_features(new)
    assert set(file) == {"train"}
    assert file.class_names is None
    assert extract(reviews, *small)[0] == 0
    fit = "privfeat fit --estimator DPLeastSquares --epsilon 50 --delta 0.1 --quiet"
    model = ("--out", str(tmp_path / "model"))
    assert main([*fit.split()[1:], "--train", f"{fitted}:train", *model]) == 0
    found = []
    for name in (fitted, new):
        out = ("--out", str(tmp_path / "p.csv"))
        features = ("--features", f"{name}:train")
        assert main(["predict", "--model", model[1], *features, *out]) == 0
        found.append((tmp_path / "p.csv").read_text())
    assert found[0] == found[1]
    assert main([*fit.split()[1:], "--train", str(new), "--out", "x"]) == 1


def test_limit_leaves_the_classes_whole(reviews, extract, tmp_path):
    assert extract(reviews, "--limit", "1")[0] == 0
    file = open_features(tmp_path / "out.h5")
    assert (len(file["train"]), len(file["classes"])) == (1, 2)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (("", "good", "a"), "it is missing"),
        (("  ", "good", "a"), "it is missing"),
    ],
)
def test_what_gives_no_row_is_refused_or_left_out(
    table, extract, tmp_path, row, reason
):
    rows = ("a film", "good", "a"), row, ("long", "bad", "b")
    path = table(*rows)
    status, _, err = extract(path, "--users", "who")
    assert status == 1
    assert f"text 2 of split 'train' cannot be used ({reason})" in err
    assert extract(path, "--users", "who", "--skip-bad")[0] == 0
    train = open_features(tmp_path / "out.h5")["train"]
    assert train.y.tolist() == [0, 1]
    assert train.groups.tolist() == [0, 1]


@pytest.mark.parametrize("other", ["fine", ""])
def test_a_row_of_another_class_is_never_left_out(table, extract, other):
    """How a reader writes classes one row may decide, and all of a class would go."""
    path = table(("a film", "good", "a"), (SECRET, other, "a"))
    for option in ((), ("--skip-bad",)):
        status, _, err = extract(path, *option)
        assert (status, "or none, in row 2." in err) == (1, True)
        assert SECRET not in err
        assert "fine" not in err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--text", "word"], "--text must be a column of"),
        (["--target", "word"], "--target must be a column of"),
        (["--users", "word"], "--users must be a column of"),
        (["--splits", "a", "b"], "--splits must be one name for one table"),
        (["--splits", "classes"], "the names of the classes are there"),
    ],
)
def test_open_texts_refuses(reviews, extract, argv, message):
    status, _, err = extract(reviews, *argv)
    assert status == 1
    assert message in err
    assert err.count("\n") == 1


def test_open_texts_refuses_what_is_no_table(tmp_path, extract):
    assert "must hold the table of each split" in extract(tmp_path)[2]
    (tmp_path / "r.txt").write_text("text")
    assert "must be a table with --text" in extract(tmp_path / "r.txt")[2]
    (tmp_path / "r.csv").write_text(f'review,verdict\n"{SECRET}\n')
    status, _, err = extract(tmp_path / "r.csv")
    assert status == 1
    assert SECRET not in err


@pytest.mark.parametrize("nobody", [" ", "NaN"])
def test_a_row_without_a_user_is_refused(table, extract, nobody):
    path = table((SECRET, "good", nobody))
    status, _, err = extract(path, "--users", "who")
    assert status == 1
    assert "column 'who' of --users: groups must name the user of each row" in err
    assert SECRET not in err


def test_two_tables_of_one_split_are_refused(table, extract, tmp_path):
    """The one whose name ends last was taken, an export of last year perhaps."""
    table((SECRET, "good", "a"), name="data/train.csv")
    np.savez(tmp_path / "data" / "train.npz", review=np.array(["old"]))
    status, _, err = extract(tmp_path / "data")
    assert status == 1
    assert "has several named train" in err
    assert not (tmp_path / "out.h5").exists()


@pytest.mark.parametrize(
    "codes",
    [
        np.array([110101199003070001.0, 110101199003070002.0]),
        np.array([20000307, 20000308], np.float32),  # from 2**24 on
        np.array([7.0, 8.0]),
    ],
)
def test_users_that_became_floats_are_refused(extract, tmp_path, codes):
    """Persons whose codes have 18 digits passed for one, of float32 those of eight."""
    pd, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    frame = {"review": ["a film", "long"], "verdict": ["good", "bad"], "who": codes}
    pd.DataFrame(frame).to_parquet(tmp_path / "r.parquet")
    status, _, err = extract(tmp_path / "r.parquet", "--users", "who")
    assert status == 1
    assert "column 'who' of --users: groups must name users as their table has" in err
    assert "0307" not in err


def test_columns_of_numbers_are_no_texts(tmp_path, extract):
    np.savez(tmp_path / "r.npz", review=np.array([4711, 2]), verdict=["good", "bad"])
    status, _, err = extract(tmp_path / "r.npz")
    assert status == 1
    assert "column 'review' of --text must hold texts" in err
    assert "4711" not in err


def test_text_rows_say_nothing_of_their_texts():
    rows = TextRows([(SECRET, None)], np.array([0]))
    with pytest.raises(BadTextError) as caught:
        rows.load(0)
    assert SECRET not in str(caught.value)


def test_another_text_is_another_extraction(table, extract):
    rows = [("a film", "good", "a"), ("long", "bad", "b")]
    assert extract(table(*rows))[0] == 0
    assert "already complete" in extract(table(*rows), "--resume")[1]
    rows[0] = ("b film", "good", "a")
    assert "made with others" in extract(table(*rows), "--resume")[2]


def test_users_that_are_no_unicode_are_told_apart(tmp_path, extract):
    rows = {"review": ["a b", "c d"], "verdict": ["good", "bad"]}
    np.savez(tmp_path / "r.npz", **rows, who=["M\ud83d", "M\udcf6"])
    assert extract(tmp_path / "r.npz", "--users", "who")[0] == 0
    assert open_features(tmp_path / "out.h5")["train"].groups.tolist() == [0, 1]


@pytest.mark.parametrize("ending", ["npz", "parquet"])
def test_users_in_bytes_have_the_names_of_texts(tmp_path, extract, ending):
    """Each way to write a name was a user, and a blank was one as well."""

    def write(*users):
        rows = {"review": ["a b", "c d", "e"], "verdict": ["good"] * 3, "who": users}
        path = tmp_path / f"r.{ending}"
        if ending == "npz":
            np.savez(path, **rows | {"who": np.array(users)})
        else:
            pytest.importorskip("pyarrow.parquet").write_table(
                pytest.importorskip("pyarrow").table(rows), path
            )
        return extract(path, "--users", "who", "--overwrite")

    for nobody in (b" ", b"NA", b"-1"):
        status, _, err = write(b"ann", b"bob", nobody)
        assert status == 1
        assert "groups must name the user of each row" in err
    assert write(b"ann ", b"bob", b"\xe2\x80\x8bann")[0] == 0
    assert open_features(tmp_path / "out.h5")["train"].groups.tolist() == [0, 1, 0]
