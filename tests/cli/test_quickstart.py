import json
import math

import pytest

from privfeat.cli.quickstart import format_table
from privfeat.data import write_features
from tests.cli.tiny import CLASS_NAMES, make_split

NAMES = ("DPLeastSquares", "DPNewton", "DPFC", "DPAdamLinear", "DPNearestMean")


@pytest.fixture(scope="module")
def report(features, tmp_path_factory):
    """Run the command once: folder, standard output, standard error."""
    from contextlib import redirect_stderr, redirect_stdout
    from io import StringIO

    from privfeat.cli import main

    folder = tmp_path_factory.mktemp("quickstart") / "out"
    out, err = StringIO(), StringIO()
    arguments = ["quickstart", features, "--out", str(folder)]
    with redirect_stdout(out), redirect_stderr(err):
        status = main([*arguments, "--epsilons", "30", "0.01", "--repeats", "2"])
    assert status == 0
    return folder, out.getvalue(), err.getvalue()


@pytest.mark.slow
def test_quickstart_writes_the_two_files(report):
    folder, _, _ = report
    assert {path.name for path in folder.iterdir()} == {"accuracy.png", "results.json"}
    assert (folder / "accuracy.png").read_bytes().startswith(b"\x89PNG")


def test_quickstart_measures_every_cell(report):
    results = json.loads((report[0] / "results.json").read_text())
    accuracy = results["test_accuracy"]
    assert tuple(accuracy) == NAMES
    for cells in accuracy.values():
        assert {key: len(cell) for key, cell in cells.items()} == {
            "0.01": 2,
            "30": 2,
            "inf": 1,
        }
    assert results["data"]["n_train"] == 240
    assert results["data"]["n_test"] == 60


def test_quickstart_reports_more_accuracy_for_less_privacy(report):
    """At epsilon 0.01 the noise drowns 240 rows; without noise they are separable."""
    results = json.loads((report[0] / "results.json").read_text())
    for cells in results["test_accuracy"].values():
        assert cells["inf"][0] > 0.9
    mean = [
        sum(sum(cells[key]) / 2 for cells in results["test_accuracy"].values()) / 4
        for key in ("0.01", "30")
    ]
    assert mean[0] + 0.2 < mean[1]
    assert results["baseline"]["test_accuracy"] > 0.9


def test_quickstart_prints_table_and_statement(report):
    _, out, err = report
    header = next(line for line in out.splitlines() if line.startswith("epsilon"))
    assert header.split() == ["epsilon", "0.01", "30", "inf"]
    assert all(f"\n{name} " in out for name in (*NAMES, "LogisticRegression"))
    assert "Differential privacy: epsilon = 0.01" in out
    assert err == ""  # progress is for terminals


def test_the_table_aligns_columns():
    cells = {
        "DPFC": {0.5: [0.5, 0.5], 8.0: [0.9, 0.8], math.inf: [0.95]},
        "DPLeastSquares": {0.5: [0.25], 8.0: [1.0], math.inf: [1.0]},
    }
    assert format_table(cells, ("LogisticRegression", 0.97)).splitlines() == [
        "epsilon               0.5      8    inf",
        "DPFC                0.500  0.850  0.950",
        "DPLeastSquares      0.250  1.000  1.000",
        "LogisticRegression                0.970",
    ]


def test_quickstart_names_no_folder_of_this_machine(report):
    folder, *_ = report
    assert str(folder.parent) not in (folder / "results.json").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--repeats", "0"), "--repeats must be >= 1"),
        (("--epsilons", "inf"), "--epsilons must be finite"),
        (("--epsilons", "nan"), "--epsilons must be finite"),
        (("--delta", "3"), "delta must be in"),
    ],
)
def test_quickstart_that_fails_leaves_nothing(
    fails, features, tmp_path, options, message
):
    out = tmp_path / "out"
    assert message in fails("quickstart", features, "--out", out, *options)
    assert not out.exists()


def test_quickstart_needs_both_splits(fails, tmp_path):
    path = tmp_path / "half.h5"
    write_features(path, {"train": make_split(30, 0)}, class_names=CLASS_NAMES)
    assert "'test'" in fails("quickstart", path, "--out", tmp_path / "out")
