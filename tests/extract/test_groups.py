import numpy as np
import pytest

from privfeat.data import open_features

NAMES = [f"{split}/{c}/{i}.png" for split, n in (("train", 5), ("test", 2))
         for c in ("cat", "dog") for i in range(n)]  # fmt: skip
PATIENTS = {name: f"patient {i // 2 % 3}" for i, name in enumerate(NAMES)}


@pytest.fixture
def table(tmp_path):
    """Return a function that writes a table of users, in another order than sorted."""

    def write(users, header="file,user"):
        lines = [f"{name},{user}" for name, user in users.items()]
        path = tmp_path / "patients.csv"
        path.write_text("\n".join([header, *reversed(lines)]) + "\n")
        return path

    return write


def users_of(split):
    return [int(PATIENTS[name][-1]) for name in NAMES if name.startswith(split)]


def test_groups_are_those_of_the_files(images, scatter, table, tmp_path):
    status, _, err = scatter(images, "--groups", table(PATIENTS))
    assert (status, err) == (0, "")
    file = open_features(tmp_path / "out.h5")
    for split in ("train", "test"):
        np.testing.assert_array_equal(file[split].groups, users_of(split))


def test_a_skipped_image_takes_its_user_with_it(images, scatter, table, tmp_path):
    (images / "train" / "cat" / "3.png").write_text("no image")
    status, _, _ = scatter(images, "--groups", table(PATIENTS), "--skip-bad")
    assert status == 0
    expected = users_of("train")
    del expected[3]
    np.testing.assert_array_equal(
        open_features(tmp_path / "out.h5")["train"].groups, expected
    )


@pytest.mark.slow
def test_several_processes_give_the_groups_of_one(
    images, scatter, table, tmp_path, monkeypatch
):
    path = table(PATIENTS)
    monkeypatch.setenv("WORLD_SIZE", "5")  # more than images of the test split
    for rank in range(5):
        monkeypatch.setenv("RANK", str(rank))
        assert scatter(images, "--groups", path)[0] == 0
    file = open_features(tmp_path / "out.h5")
    for split in ("train", "test"):
        np.testing.assert_array_equal(file[split].groups, users_of(split))


def test_a_complete_file_is_kept_for_the_same_users_alone(images, scatter, table):
    assert scatter(images, "--groups", table(PATIENTS))[0] == 0
    again = table(PATIENTS | {"others/1.png": "x"})  # no image of this data
    assert scatter(images, "--groups", again, "--resume")[0] == 0
    other = table(PATIENTS | {NAMES[0]: "patient 9"})
    assert scatter(images, "--groups", other, "--resume")[0] == 1
    assert scatter(images, "--resume")[0] == 1


@pytest.mark.parametrize(
    ("users", "header", "message"),
    [
        (PATIENTS, "path,user", "has no column 'file'. Name them in the first line."),
        (PATIENTS, "file;user", "its first line is by semicolons"),
        ({}, "file,user", f"has none for {NAMES[0]}"),
        (PATIENTS | {NAMES[4]: ""}, "file,user", f"has none for {NAMES[4]}"),
        ({name: 1 for name in NAMES[1:]}, "file,user", f"has none for {NAMES[0]}"),
    ],
)
def test_a_bad_table_is_refused(images, scatter, table, users, header, message):
    status, _, err = scatter(images, "--groups", table(users, header))
    assert status == 1
    assert message in err


def test_a_file_named_twice_is_refused(images, scatter, table):
    path = table(PATIENTS)
    path.write_text(path.read_text() + f"{NAMES[0]},patient 7\n")
    status, _, err = scatter(images, "--groups", path)
    assert status == 1
    assert f"names {NAMES[0]} twice" in err


def test_data_without_file_names_has_no_groups(scatter, table):
    status, _, err = scatter("digits", "--groups", table(PATIENTS))
    assert status == 1
    assert "has none for" in err
