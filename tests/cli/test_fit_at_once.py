"""Two commands with one ``--out``."""

from filelock import FileLock

from tests.cli.tiny import fit_arguments


def test_of_two_fits_into_one_folder_the_second_is_refused(fails, features, tmp_path):
    """Both would be charged, and one model be lost."""
    out = tmp_path / "m"
    out.mkdir()
    with FileLock(out / ".fit.lock"):
        message = fails(*fit_arguments(features, out))
    assert "--out must be written by one command at a time" in message


def test_a_fit_leaves_no_lock(run, features, tmp_path):
    assert run(*fit_arguments(features, tmp_path / "m"))[0] == 0
    assert not (tmp_path / "m" / ".fit.lock").exists()
