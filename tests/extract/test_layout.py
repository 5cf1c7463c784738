import pytest

from privfeat.data.pixels import is_image
from privfeat_extract.errors import ExtractError
from privfeat_extract.layout import read_layout


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("train/cat/1.JPG", True),
        ("cat/1.jpeg", True),
        ("cat/notes.txt", False),
        ("cat/.hidden.png", False),
        ("__MACOSX/cat/1.png", False),
        (".git/1.png", False),
    ],
)
def test_is_image_judges_by_name(path, expected):
    assert is_image(path) == expected


def test_read_layout_sorts_splits_classes_and_files():
    paths = ["train/b/2.png", "train/b/1.png", "train/a/sub/3.png", "test/c/1.png"]
    layout = read_layout(paths, None, "data")
    assert layout.class_names == ["a", "b", "c"]
    assert layout.files == {
        "train": ["train/a/sub/3.png", "train/b/1.png", "train/b/2.png"],
        "test": ["test/c/1.png"],
    }
    assert layout.labels == {"train": [0, 1, 1], "test": [2]}


def test_read_layout_takes_named_splits_only():
    paths = ["train/b/2.png", "test/a/1.png", "extra/x/1.png"]
    layout = read_layout(paths, ["extra", "train"], "data")
    assert list(layout.files) == ["extra", "train"]
    assert layout.class_names == ["b", "x"]


def test_read_layout_says_how_many_images_lie_in_no_folder(capfd):
    read_layout(["train/a/1.png", "train/b/2.png", "stray.png"], None, "data")
    assert "left out: 1 image(s) in no folder" in capfd.readouterr().err


@pytest.mark.parametrize("folders", [(), ("a",), ("a", "b"), ("train/a", "train/b")])
def test_read_layout_warns_where_images_alone_make_classes(folders, capfd):
    """One image of a third class gave all others another number."""
    within = "train/" if "train/a" in folders else ""
    paths = [f"{within}{name}" for name in ("a/0.png", "b/0.png")]
    named = (*folders, "train") if within else folders
    read_layout(paths, None, "data.zip", named)
    told = "data.zip does not name all of its folders" in capfd.readouterr().err
    assert told == (len(folders) < 2)
    read_layout([*paths, f"{within}c/9.png"], None, "data.zip", named)
    assert "does not name all" in capfd.readouterr().err


def test_read_layout_says_what_is_left_out(capfd):
    paths = ["train/b/2.png", "test/a/1.png", "calibrate/b/1.png"]
    assert list(read_layout(paths, None, "data").files) == ["train", "test"]
    said = capfd.readouterr().err
    assert "left out: calibrate" in said
    assert "--splits train test calibrate" in said
    read_layout(paths, ["train"], "data")  # as it was asked for
    read_layout(paths[:2], None, "data")
    assert "left out" not in capfd.readouterr().err


@pytest.mark.parametrize("splits", [None, ["train"]])
def test_read_layout_takes_classes_alone_as_the_training_split(splits):
    layout = read_layout(["cat/1.png", "dog/1.png"], splits, "data")
    assert layout.files == {"train": ["cat/1.png", "dog/1.png"]}


def test_read_layout_ignores_one_folder_around_everything():
    paths = ["photos/train/cat/1.png", "photos/test/cat/2.png"]
    layout = read_layout(paths, None, "data")
    assert layout.files["test"] == ["photos/test/cat/2.png"]
    assert layout.class_names == ["cat"]


@pytest.mark.parametrize(
    ("paths", "splits", "message"),
    [
        ([], None, "must hold images, but data holds none"),
        (["1.png"], None, "must lie in class folders"),
        (["1.png", "a/b/1.png", "a/c/1.png"], None, "must lie in class folders"),
        (["a/1.png", "a/b/1.png", "a/c/1.png"], None, "must lie in class folders"),
        (["train/1.png"], None, "must lie in class folders"),
        (["train/a/1.png"], ["val"], "'val' is not among"),
        (["Train/a/1.png", "Test/a/1.png"], None, "'Test' is the name of a split"),
        (["Train/a/1.png", "test/a/1.png"], None, "'Train' is the name of a split"),
        (["x/train/a/1.png", "y/b/1.png"], None, "'x/train' is the name of a split"),
        (["x/a/1.png", "y/a/1.png"], None, "same folders"),
    ],
)
def test_read_layout_refuses(paths, splits, message):
    with pytest.raises(ExtractError, match=message):
        read_layout(paths, splits, "data")


def test_read_layout_takes_splits_in_capitals_that_are_named():
    layout = read_layout(["Train/a/1.png", "Test/b/1.png"], ["Train", "Test"], "data")
    assert layout.class_names == ["a", "b"]


@pytest.mark.parametrize(
    ("paths", "rare", "folders"),
    [
        (["p/cat/1.png", "p/cat/2.png"], "p/dog/1.png", ["p", "p/cat", "p/dog"]),
        (["train/cat/1.png", "train/dog/1.png"], "val/cat/1.png", ["val/rare"]),
        (["cat/a/1.png", "cat/b/1.png"], "dog/1.png", ["cat", "dog"]),
    ],
)
def test_read_layout_finds_the_same_classes_without_an_image(paths, rare, folders):
    """The names of the classes are public, so no image may decide what they are."""
    folders += [rare.rsplit("/", 1)[0]]
    whole = read_layout([*paths, rare], None, "data", folders)
    assert read_layout(paths, None, "data", folders).class_names == whole.class_names
    assert len(whole.class_names) > 1


def test_read_layout_refuses_split_folders_without_images():
    with pytest.raises(ExtractError, match="must hold images in train"):
        read_layout(["cat/1.png", "dog/1.png"], None, "data", ["train", "cat", "dog"])
