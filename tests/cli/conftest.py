import numpy as np
import pytest

from privfeat import DPLeastSquares, PrivacyLedger
from privfeat.cli import main
from privfeat.data import write_features
from tests.cli.patients import COLUMNS, fit, rows_of, write
from tests.cli.tiny import CLASS_NAMES, make_split


@pytest.fixture(scope="session")
def features(tmp_path_factory):
    """Return the path of a feature file with the splits train and test."""
    path = tmp_path_factory.mktemp("features") / "tiny.h5"
    splits = {"train": make_split(240, 0), "test": make_split(60, 1)}
    write_features(path, splits, class_names=CLASS_NAMES)
    return str(path)


@pytest.fixture(scope="session")
def model(features, tmp_path_factory):
    """Return the folder of a saved model."""
    path = str(tmp_path_factory.mktemp("models") / "model")
    command = "fit --estimator DPLeastSquares --epsilon 20 --delta 1e-6 --quiet"
    assert main([*command.split(), "--train", features, "--out", path]) == 0
    return path


@pytest.fixture(scope="session")
def patients(tmp_path_factory):
    """Return a folder with tables, their declaration and a model."""
    folder = tmp_path_factory.mktemp("tables")
    (folder / "columns.toml").write_text(COLUMNS)
    write(folder / "train.csv", rows_of(600, 0))
    write(folder / "test.csv", rows_of(100, 1))
    words = (
        "--test",
        folder / "test.csv",
        "--test-is-public",
        "--quiet",
        "--out",
        folder / "model",
    )
    assert main([str(word) for word in fit(folder, *words)]) == 0
    return folder


@pytest.fixture
def run(capsys):
    """Return a function that runs a command line: status, stdout, stderr."""

    def run_command(*argv):
        try:
            status = main([str(arg) for arg in argv])
        except SystemExit as stop:
            status = stop.code
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run_command


@pytest.fixture
def fails(run):
    """Return a function that runs a command which must fail with one line.

    Or with one for each column of a table.
    """

    def run_command(*argv):
        status, _, err = run(*argv)
        assert status in (1, 3)  # 3: no budget left
        assert err.startswith("privfeat: error: ")
        of_columns = err.count("\ncolumn ")
        assert err.count("\n") == 1 + of_columns
        return err

    return run_command


@pytest.fixture
def fit_is_forbidden(plant):
    """Fail if a fit begins."""

    def spend(self, X, y, groups=None):
        pytest.fail("the budget was spent before the command failed")

    plant("fit of a linear model", spend, of=DPLeastSquares)


@pytest.fixture
def folder(tmp_path):
    """Dark and bright images, for training and for a test."""
    Image = pytest.importorskip("PIL.Image")
    draw = np.random.default_rng(0)
    for split in ("train", "test"):
        for name, level in (("bright", 160), ("dark", 20)):
            (tmp_path / split / name).mkdir(parents=True)
            for i in range(12):
                pixels = draw.integers(level, level + 60, (10, 12, 3)).astype(np.uint8)
                Image.fromarray(pixels).save(tmp_path / split / name / f"{i}.png")
    return tmp_path


@pytest.fixture
def made_like(tmp_path):
    """Return a function that writes features of a network, and returns their file."""

    def write(name, **known):
        origin = {"model": "toy", "pooling": "avg", "crop": 8, "dataset": "x"} | known
        splits = {"train": make_split(240, 0), "test": make_split(60, 1)}
        path = tmp_path / f"{name}.h5"
        write_features(path, splits, class_names=CLASS_NAMES, metadata=origin)
        return path

    return write


@pytest.fixture
def charged(run, features, tmp_path):
    """Return the folder of a model that was charged, and its ledger."""
    ledger, folder = tmp_path / "team.ledger", tmp_path / "charged"
    PrivacyLedger(ledger, dataset="tiny", epsilon=30.0, delta=1e-6)
    fit = "fit --estimator DPLeastSquares --epsilon 20 --delta 1e-6 --quiet"
    names = ("--ledger", ledger, "--dataset", "tiny")
    assert run(*fit.split(), "--train", features, "--out", folder, *names)[0] == 0
    return folder, ledger
