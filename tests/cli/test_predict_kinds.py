"""`privfeat predict` with probabilities, names, and each kind of saved model."""

import csv
from pathlib import Path

import h5py
import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from privfeat import (
    DPFC,
    DPLeastSquares,
    DPLeastSquaresRegressor,
    PublicColumns,
    load,
    open_features,
    save,
)
from privfeat.data import write_features
from privfeat.data.origin import digest_of_list
from tests.cli.tiny import CLASS_NAMES, make_split, train_on

COLUMNS = {f"x{i}": {"kind": "numeric", "bounds": [-2, 2]} for i in range(5)}


def read(path):
    with path.open(newline="") as file:
        return list(csv.reader(file))


@pytest.fixture
def out(tmp_path):
    return tmp_path / "p.csv"


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    """Return the folder of a pipeline, beside a table of its columns."""
    folder = tmp_path_factory.mktemp("pipeline")
    X, y = make_split(60, 0)
    fitted = make_pipeline(PublicColumns(COLUMNS), DPFC(epsilon=9, classes=range(4)))
    save(fitted.fit(X, y), folder / "model")
    columns = {f"x{i}": column for i, column in enumerate(X.T)}
    names = np.array([f"p{i}" for i in range(60)])
    np.savez(folder / "rows.npz", **columns, who=names)
    return folder


def test_predict_adds_the_probability_of_each_class(run, features, model, out):
    words = ("--features", features, "--out", out, "--proba")
    assert run("predict", "--model", model, *words)[0] == 0
    header, *rows = read(out)
    assert header == ["row", "class", "name", *(f"proba_{n}" for n in CLASS_NAMES)]
    found = np.array([row[3:] for row in rows], float)
    X = open_features(features)["test"].X
    np.testing.assert_array_equal(found, load(model).predict_proba(X))


def test_predict_adds_the_probability_of_each_label(run, features, tmp_path, out):
    X, y = make_split(60, 0)
    several = np.eye(3, dtype=int)[y]
    clf = DPLeastSquares(epsilon=9, classes=["a", "b", "c"]).fit(X, several)
    save(clf, tmp_path / "model")
    words = ("--features", features, "--out", out, "--proba")
    assert run("predict", "--model", tmp_path / "model", *words)[0] == 0
    header, first, *_ = read(out)
    assert header == ["row", "a", "b", "c", "proba_a", "proba_b", "proba_c"]
    np.testing.assert_array_equal(
        np.array(first[4:], float),
        clf.predict_proba(open_features(features)["test"].X[:1])[0],
    )


def test_predict_refuses_probabilities_of_a_regressor(fails, features, tmp_path, out):
    X, _ = make_split(60, 0)
    number = DPLeastSquaresRegressor(epsilon=9, target_bounds=(-1, 2)).fit(X, X[:, 0])
    save(number, tmp_path / "model")
    words = ("--features", features, "--out", out, "--proba")
    message = fails("predict", "--model", tmp_path / "model", *words)
    assert "--proba is for classifiers" in message
    assert not out.exists()


def test_predict_takes_a_table_for_a_pipeline(run, pipeline, out):
    words = ("--features", pipeline / "rows.npz", "--out", out, "--id", "who")
    status, printed, _ = run("predict", "--model", pipeline / "model", *words)
    assert status == 0
    assert "It says whose each is (who): keep it with the data." in printed
    header, *rows = read(out)
    assert header == ["row", "who", "class"]
    assert [row[1] for row in rows] == [f"p{i}" for i in range(60)]
    expected = load(pipeline / "model").predict(make_split(60, 0)[0])
    assert [int(row[2]) for row in rows] == expected.tolist()


@pytest.mark.parametrize("name", ["row", "class", "proba_0"])
def test_predict_writes_no_two_columns_of_one_name(run, pipeline, out, name):
    table = dict(np.load(pipeline / "rows.npz"))
    table[name] = table.pop("who")
    np.savez(pipeline / "named.npz", **table)
    words = ("--features", pipeline / "named.npz", "--out", out, "--id", name)
    run("predict", "--model", pipeline / "model", *words, "--proba")
    header, first, *_ = read(out)
    assert len({*header}) == len(header)
    assert dict(zip(header, first, strict=True))[f"id_{name}"] == "p0"


def test_predict_takes_a_table_for_a_pipeline_of_more_steps(
    run, pipeline, tmp_path, out
):
    X, y = make_split(60, 0)
    clf = DPFC(epsilon=9, classes=range(4))
    steps = (PublicColumns(COLUMNS), PublicColumns(COLUMNS), clf)
    fitted = make_pipeline(*steps).fit(X, y)
    save(fitted, tmp_path / "model")
    words = ("--features", pipeline / "rows.npz", "--out", out)
    assert run("predict", "--model", tmp_path / "model", *words)[0] == 0
    assert [int(row[1]) for row in read(out)[1:]] == fitted.predict(X).tolist()


@pytest.mark.parametrize(
    "words", [("--id", "who"), ("--names",), ("--of", "x.csv")], ids=" ".join
)
def test_predict_asks_what_a_feature_file_is_of(fails, features, model, out, words):
    rest = ("--features", features, "--out", out)
    message = fails("predict", "--model", model, *rest, *words)
    assert "--of must be given together with --id or --names" in message


def test_predict_takes_the_column_of_the_table_that_texts_are_of(
    run, fails, features, model, tmp_path, out
):
    rest = ("--model", model, "--features", features, "--out", out, "--id", "who")
    table = tmp_path / "texts.csv"
    table.write_text("\n".join(["who,text", *(f"p{i},words" for i in range(60))]))
    status, _, err = run("predict", *rest, "--of", table)
    assert status == 0
    assert "nothing in it says which they are" in err
    header, *rows = read(out)
    assert header == ["row", "who", "class", "name"]
    assert [row[1] for row in rows] == [f"p{i}" for i in range(60)]
    table.write_text("\n".join(["who,text", *(f"p{i},words" for i in range(59))]))
    assert "with a row for each of its rows" in fails("predict", *rest, "--of", table)
    folder = fails("predict", *rest, "--of", tmp_path)
    assert "must be a table, got the folder" in folder
    assert folder.endswith(f"such as {tmp_path / 'test.csv'}.\n")
    both = fails("predict", *rest, "--of", table, "--names")
    assert "--id and --names must not be given together" in both


def test_predict_takes_names_of_the_images_that_features_are_of(
    run, fails, model, tmp_path, out
):
    X, y = make_split(6, 3)
    names = [f"test/{label}/{i}.png" for i, label in enumerate(sorted(y.tolist()))]
    for name in names:
        (tmp_path / "images" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "images" / name).touch()
    (tmp_path / "images" / "train").mkdir()
    (tmp_path / "images" / "train" / "x.png").touch()
    listed = digest_of_list(sorted(names), sorted(y.tolist()))
    path = tmp_path / "rows.h5"
    write_features(path, {"test": (X, np.sort(y))}, class_names=CLASS_NAMES)
    with h5py.File(path, "r+") as file:
        file["test"].attrs["file_list_sha256"] = listed
    words = ("--model", model, "--features", path, "--out", out, "--names")
    assert run("predict", *words, "--of", tmp_path / "images")[0] == 0
    header, *rows = read(out)
    assert header == ["row", "file", "class", "name"]
    assert [row[1] for row in rows] == sorted(names)
    (tmp_path / "images" / names[0]).rename(tmp_path / "images" / "test" / "y.png")
    message = fails("predict", *words, "--of", tmp_path / "images")
    assert "with the same images" in message
    assert "must be a folder" in fails("predict", *words, "--of", path)


def test_predict_refuses_a_source_of_a_table(fails, pipeline, out):
    words = ("--features", pipeline / "rows.npz", "--out", out)
    message = fails("predict", "--model", pipeline / "model", *words, "--names")
    assert "must not be given for a table" in message


def test_predict_refuses_a_column_that_is_not_there(fails, pipeline, out):
    words = ("--features", pipeline / "rows.npz", "--out", out, "--id", "other")
    message = fails("predict", "--model", pipeline / "model", *words)
    assert "--id must be a column of" in message


def test_evaluate_refuses_a_pipeline_that_knows_no_target(fails, pipeline):
    table = pipeline / "rows.npz"
    message = fails("evaluate", "--model", pipeline / "model", "--test", table)
    assert "does not know the column of the classes" in message


def test_report_of_a_pipeline_is_that_of_a_table(run, pipeline, tmp_path):
    pytest.importorskip("jinja2", reason="pip install 'privfeat[report]'")
    page = tmp_path / "page.html"
    assert run("report", pipeline / "model", "--out", page)[0] == 0
    assert "x4" in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_sanity_takes_the_last_step_of_a_pipeline_of_public_ones(run, pipeline):
    words = ("--epsilon", 1, "--n-fits", 6, "--n-users", 20, "--n-samples", 20)
    status, out, _ = run("sanity", "--model", pipeline / "model", *words)
    assert status == 0
    assert "random labels: pass" in out


@pytest.mark.slow
def test_predict_takes_a_folder_for_a_network_of_images(run, fails, tmp_path, out):
    pytest.importorskip("flax", reason="pip install 'privfeat[train]'")
    from PIL import Image

    draw = np.random.default_rng(0)
    places = [f"{name}/{i:02}.png" for name in "ab" for i in range(8)]
    for name in places:
        path = tmp_path / "images" / "train" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = draw.integers(0, 255, (8, 8, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(path)
    folder = tmp_path / "images"
    assert train_on(folder, "--quiet") == 0
    words = ("--features", folder / "train", "--out", out, "--proba", "--names")
    assert run("predict", "--model", folder / "model", *words)[0] == 0
    header, *rows = read(out)
    assert header == ["row", "file", "class", "name", "proba_a", "proba_b"]
    assert [row[1] for row in rows] == places
    message = fails(*("predict", "--model", folder / "model", "--id", "who", *words))
    assert "--id and --of are for rows" in message


def test_predict_does_not_replace_its_rows(fails, features, model):
    path = Path(str(features).removesuffix(":test"))
    before = path.read_bytes()
    rest = ("--model", model, "--features", f"{path}:test", "--out", path)
    assert "--out must be another file than the rows" in fails("predict", *rest)
    assert path.read_bytes() == before


def test_predict_reads_a_large_feature_file_in_blocks(run, model, tmp_path, out):
    """More rows than a block holds, the last of them in a block that is not full."""
    X = np.resize(make_split(500, 3)[0], (70_000, 5)).astype(np.float32)
    write_features(tmp_path / "large.h5", {"test": (X, np.zeros(len(X), int))})
    words = ("--features", tmp_path / "large.h5", "--out", out, "--proba")
    _, told, _ = run("predict", "--model", model, *words)
    assert "70000 predictions" in told
    header, *rows = read(out)
    assert header[0] == "row"
    assert [row[0] for row in rows] == [*map(str, range(70_000))]
    found = np.array([row[3:] for row in rows], float)
    np.testing.assert_array_equal(found, load(model).predict_proba(X))
