"""The table of docs/reference/commands.md on saved models says what each verb takes."""

import re
from pathlib import Path

import numpy as np
import pytest

from privfeat import (
    DPLeastSquares,
    DPLeastSquaresRegressor,
    DPSGDClassifier,
    DPSGDRegressor,
    PrivatePipeline,
    save,
)
from privfeat.cli import build_parser
from privfeat.data import write_features
from privfeat.preprocessing import DPStandardScaler

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "commands.md"
STEPS = {"n_iter": 1, "expected_batch_size": 10}
FEW = ("--n-fits", 6, "--n-users", 20, "--n-samples", 30)


def table():
    """Return the cells of the first table: by verb and kind."""
    text = PAGE.read_text().partition("Of a saved model")[2].partition("\n\nA regr")[0]
    rows = [
        [cell.strip(" `") for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|") and not re.match(r"\|[ -]+\|", line)
    ]
    (_, *kinds), *cells = rows
    return {
        (verb, kind): said
        for verb, *all_said in cells
        for kind, said in zip(kinds, all_said, strict=True)
    }


def made(kind):
    """Return a model of this kind, not fitted."""
    classes = {"classes": range(3), "epsilon": 5.0}
    scaler = DPStandardScaler(bounds=(-9.0, 9.0))
    piped = [("scale", scaler), ("clf", DPLeastSquares(classes=range(3)))]
    network = {"model": "mlp", "noise_multiplier": 9.0, **STEPS}
    return {
        "classifier": lambda: DPLeastSquares(**classes),
        "regressor": lambda: DPLeastSquaresRegressor(epsilon=5.0, target_bounds=(0, 2)),
        "network": lambda: DPSGDClassifier(classes=range(3), **network),
        "network of numbers": lambda: DPSGDRegressor(**network),
        "pipeline": lambda: PrivatePipeline(piped, epsilon=5.0),
    }[kind]()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return the path of rows, in a split that no model was fitted on."""
    draw, path = np.random.default_rng(0), tmp_path_factory.mktemp("d") / "rows.h5"
    rows = draw.normal(size=(60, 9)).astype(np.float32), draw.integers(3, size=60)
    write_features(path, {"test": rows})
    return path, rows


@pytest.fixture(scope="module")
def folder_of(data, tmp_path_factory):
    """Return a function that returns the folder of a saved model of a kind."""
    found = {}

    def folder(kind):
        if kind not in found:
            found[kind] = tmp_path_factory.mktemp("m") / "model"
            save(made(kind).fit(*data[1]), found[kind])
        return found[kind]

    return folder


def words(verb, kind, folder, rows, out):
    """Return the command line that the table speaks of."""
    name, *more = verb.split()
    numbers = kind in ("regressor", "network of numbers")
    return {
        "statement": [name, folder],
        "predict": [
            *(name, "--model", folder, "--features", rows),
            *(*more, "--out", out / "p.csv"),
        ],
        "evaluate": [
            *(name, "--model", folder, "--test", rows, "--overwrite"),
            *(("--target-bounds", 0, 2) if numbers else ()),
        ],
        "report": [
            *(name, folder, "--out", out / "r.html", "--card", out / "c.md"),
            *(("--test", rows, "--test-is-public") if more else ()),
        ],
        "export": [name, folder, *more, out / "exported"],
        "audit": [
            name,
            *more,
            folder,
            "--n-samples",
            30,
            "--epsilon",
            5,
            "--n-canaries",
            10,
        ],
        "sanity": [name, *more, folder, *FEW],
    }[name]


@pytest.mark.slow
@pytest.mark.parametrize(("verb", "kind"), [*table()])
def test_verb_takes_what_the_table_says(verb, kind, run, data, folder_of, tmp_path):
    for package in ("flax", "jax_privacy", "jinja2", "onnx", "safetensors"):
        pytest.importorskip(package)
    argv = words(verb, kind, folder_of(kind), data[0], tmp_path)
    if verb.startswith("sanity") and "network" not in kind:
        argv += ["--epsilon", 1]
    status, _, err = run(*argv)
    said = table()[verb, kind]
    assert said in ("yes", "no")
    assert status == (0 if said == "yes" else 1), err
    if said == "no":
        assert err.startswith("privfeat: error: ")


def test_table_has_every_verb_that_takes_a_saved_model():
    usage = build_parser().format_help()
    verbs = re.findall(r"^    ([a-z]+) ", usage, re.MULTILINE)
    assert "evaluate" in verbs
    takes = {verb.split()[0] for verb, _ in table()}
    makes = PAGE.read_text().partition("These make or plan")[2]
    beside = {"columns", "doctor", "quickstart"}
    for verb in {*verbs} - takes - beside:
        assert f"`{verb}`" in makes, verb
