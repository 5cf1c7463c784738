"""What is written is listed in docs/what-leaves.md, part by part."""

import json
import re
from pathlib import Path

import h5py
import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from privfeat import (
    DPLeastSquares,
    PrivacyLedger,
    PrivatePipeline,
    PublicColumns,
    open_features,
    save,
)
from privfeat._types import STAYS_AT_HOME
from privfeat.cli import build_parser
from privfeat.core.ledger.stores.chained_log import MARK_BYTES
from privfeat.data import FeatureWriter, join_features
from privfeat.data.schema import ORIGIN
from privfeat.preprocessing import DPPCA, DPClassCounts, DPQuantiles, DPStandardScaler
from tests.cli.tiny import CLASS_NAMES, make_split

DOCS = Path(__file__).parents[2] / "docs" / "what-leaves.md"
PUBLIC, HOME = "public by the statement", "stays at home"


def listed(file):
    """Return the parts of a file, as patterns, with who may see them."""
    rows = re.findall(r"^\| (.*) \| (.*) \| (.*) \| (.*) \|$", DOCS.read_text(), re.M)
    return {
        part: who
        for name, parts, _, who in rows
        if name == file
        for part in re.findall("`([^`]*)`", parts)
    }


def unlisted(file, parts):
    """Return the parts that the table does not name; ``*`` stands for anything."""
    patterns = [re.escape(part).replace(r"\*", ".*") for part in listed(file)]
    assert patterns, f"no row for {file}"
    return {p for p in parts if not any(re.fullmatch(known, p) for known in patterns)}


def paths_of(value, prefix=""):
    """Return the paths of all parts of a JSON value, lists as ``[]``."""
    if isinstance(value, dict) and value:
        inner = [
            paths_of(v, f"{prefix}.{k}" if prefix else k) for k, v in value.items()
        ]
        return set().union(*inner)
    if isinstance(value, list) and value:
        return set().union(*(paths_of(item, f"{prefix}[]") for item in value))
    return {f"{prefix}[]"} if isinstance(value, list) else {prefix}


def parts_of_features(path):
    """Return all attributes and datasets of a feature file."""
    with h5py.File(path) as file:
        found = {f"@{name.removesuffix('_json')}" for name in file.attrs}

        def visit(name, item):
            split, _, rest = name.partition("/")
            place = f"SPLIT/{rest}" if rest else "SPLIT"
            if isinstance(item, h5py.Dataset):
                found.add(place if rest else split)
            found.update(f"{place}@{key}" for key in item.attrs)

        file.visititems(visit)
    return found


def check_model(folder):
    assert not unlisted("model folder", {path.name for path in folder.iterdir()})
    document = json.loads((folder / "model.json").read_text())
    assert not unlisted("model.json", paths_of(document))
    assert not unlisted("statement", paths_of(document["privacy"]))
    (arrays,) = folder.glob("*.npz")
    with np.load(arrays) as file:
        names = {re.sub(r"^\d+/", "STEP/", name) for name in file.files}
        assert not unlisted("arrays", names)
        of_steps = {name.removeprefix("STEP/") for name in names}
        assert not unlisted("arrays", of_steps)


def test_pipelines_hold_what_is_listed(tmp_path):
    columns = PublicColumns({"age": {"kind": "numeric", "bounds": [0, 9]}})
    X, y = np.arange(8.0)[:, None], np.arange(8) % 2
    clf = DPLeastSquares(epsilon=9, classes=[0, 1])
    save(make_pipeline(columns, clf).fit(X, y), tmp_path / "model")
    check_model(tmp_path / "model")
    scale = DPStandardScaler(bounds=(0, 9))
    steps = [("scale", scale), ("clf", DPLeastSquares(classes=[0, 1]))]
    fitted = (
        PrivatePipeline(steps, epsilon=9),
        DPPCA(epsilon=9),
        DPQuantiles(epsilon=9),
        DPClassCounts(epsilon=9, classes=[0, 1]),
    )
    for step in fitted:
        save(step.fit(X, y), tmp_path / type(step).__name__)
        check_model(tmp_path / type(step).__name__)


def test_table_says_of_each_part_who_may_see_it():
    rows = [line for line in DOCS.read_text().splitlines() if line.startswith("| ")]
    answers = {row.split(" | ")[-1].removesuffix(" |") for row in rows[1:]} - {"---"}
    assert answers == {PUBLIC, HOME}
    features = listed("feature file")
    assert {part for part, who in features.items() if who == PUBLIC} == {
        f"@{name}" for name in ORIGIN
    }


def test_table_says_who_may_see_the_output_of_each_command():
    usage = build_parser().format_help()
    verbs = {*re.findall(r"^    (\w+) {2}", usage, re.M)}
    assert {"fit", "budget", "predict"} < verbs
    assert not unlisted("commands", verbs | {"overlap", "privfeat-extract"})


def test_table_keeps_at_home_what_the_view_of_a_notebook_shows_of_parameters():
    """A saved model leaves them out; scikit-learn's view shows every parameter."""
    shown = DPLeastSquares(random_state=24680)._repr_mimebundle_()
    assert all("24680" in text for text in shown.values())
    for name in STAYS_AT_HOME:
        if name in DPLeastSquares().get_params():
            assert listed("notebook")[name] == HOME


def test_an_unknown_part_is_not_in_the_table():
    assert unlisted("model.json", {"fitted.n_samples_", "sha256"}) == {
        "fitted.n_samples_"
    }
    assert unlisted("feature file", {"SPLIT/skipped"}) == {"SPLIT/skipped"}


def test_model_folder_and_predictions_hold_what_is_listed(
    run, model, features, tmp_path
):
    check_model(Path(model))
    table = tmp_path / "predictions.csv"
    assert (
        run(
            *("predict", "--model", model, "--features", features, "--out", table),
            "--proba",
        )[0]
        == 0
    )
    header = table.read_text().splitlines()[0].split(",")
    assert not unlisted("predictions.csv", header)


@pytest.mark.slow
def test_folders_of_a_network_hold_what_is_listed(tmp_path):
    pytest.importorskip("flax")
    from privfeat import DPSGDClassifier

    X, y = make_split(60, 0)
    ledger = PrivacyLedger(tmp_path / "x", dataset="x", epsilon=5.0, delta=1e-5)
    network = DPSGDClassifier(
        model="mlp",
        classes=range(3),
        n_iter=1,
        expected_batch_size=10,
        checkpoint_dir=tmp_path / "kept",
        ledger=ledger,
    )
    save(network.fit(X, y), tmp_path / "model")
    check_model(tmp_path / "model")
    (public,) = (tmp_path / "kept").glob("*/public/metadata")
    found = {f"public.{key}" for key in json.loads(public.read_text())}
    exact = {part: who for part, who in listed("checkpoints").items() if part != "*"}
    assert found == set(exact)


def test_evaluation_and_what_shows_it_hold_what_is_listed(run, features, tmp_path):
    folder, page, card = (tmp_path / name for name in ("model", "p.html", "c.md"))
    fit = "fit --estimator DPLeastSquares --epsilon 20 --delta 1e-6 --quiet".split()
    assert run(*fit, "--train", features, "--out", folder)[0] == 0
    assert run("evaluate", "--model", folder, "--test", features)[0] == 0
    check_model(folder)
    document = json.loads((folder / "evaluation.json").read_text())
    assert not unlisted("evaluation.json", paths_of(document))
    assert not unlisted("statement", paths_of(document["privacy"]))
    assert run("report", folder, "--out", page, "--card", card)[0] == 0
    tables = re.findall(r'<table role="table" aria-label="(.*?)"', page.read_text())
    assert {"Private accuracy", "Private recall"} < {*tables}
    assert not unlisted("report", tables)
    body = card.read_text(encoding="utf-8").split("---\n")[2]
    assert not unlisted("card", re.findall(r"^## (.*)$", body, re.M))


def write_like_extraction(path, n_rows, secret, *, shard=None):
    """Write what `privfeat-extract` writes of other records."""
    X, y = make_split(n_rows, n_rows)
    known = {name: "known" for name in ORIGIN if not name.startswith(("n_", "feature"))}
    arguments = {"data": "photos", "file_lists": {"train": secret}, "groups": secret}
    shards = {} if shard is None else {"shard": shard}
    with FeatureWriter(path, n_features=5, dtype="float32") as writer:
        writer.append(
            "train", X, y, groups=np.arange(n_rows), skipped=[f"{secret}.png"]
        )
        writer.finish(
            {**known, "limit": None, "arguments": arguments, **shards},
            class_names=CLASS_NAMES,
            split_metadata={"train": {"file_list_sha256": secret}},
        )


def test_feature_files_hold_what_is_listed(tmp_path):
    parts = [tmp_path / f"{number}.h5" for number in (1, 2)]
    for number, path in enumerate(parts, 1):
        shard = {"number": number, "count": 2, "n_images": {"train": 21}}
        write_like_extraction(path, 9 + number, "digest", shard=shard)
    joined = tmp_path / "joined.h5"
    join_features(joined, parts)
    for path in (*parts, joined):
        assert not unlisted("feature file", parts_of_features(path))


def test_extracted_file_holds_what_is_listed(tmp_path):
    pytest.importorskip("kymatio")
    from privfeat_extract.cli import main

    path = tmp_path / "digits.h5"
    options = ("--model", "scattering", "--limit", "4", "--quiet")
    assert main(["--data", "digits", *options, "--out", str(path)]) == 0
    assert not unlisted("feature file", parts_of_features(path))


def test_report_and_card_are_the_same_for_other_records(run, model, tmp_path):
    """Neither the number of records nor their names and labels change a byte."""
    pages = []
    for n_rows, secret in ((50, "one"), (51, "two")):
        path = tmp_path / f"{n_rows}.h5"
        write_like_extraction(path, n_rows, secret)
        page, card = tmp_path / "page.html", tmp_path / "card.md"
        names = ("--features", path, "--out", page, "--card", card)
        assert run("report", model, *names)[0] == 0
        pages.append((page.read_bytes(), card.read_bytes()))
    assert pages[0] == pages[1]
    assert b"SHA-256 of the weights" in pages[0][0]


def test_report_card_and_ledger_hold_what_is_listed(run, features, tmp_path):
    ledger, folder = tmp_path / "team.ledger", tmp_path / "model"
    PrivacyLedger(ledger, dataset="tiny", epsilon=30.0, delta=1e-6)
    fit = "fit --estimator DPLeastSquares --epsilon 20 --delta 1e-6 --quiet".split()
    whose = ("--ledger", ledger, "--dataset", "tiny")
    assert run(*fit, "--train", features, "--out", folder, *whose)[0] == 0
    audit = tmp_path / "audit.json"
    audit.write_text(json.dumps({"replay": {"movements": [{"observed": 1.0}]}}))
    page, card = tmp_path / "page.html", tmp_path / "card.md"
    asked = ("--test", features, "--test-is-public", "--audit", audit)
    asked += ("--out", page, "--card", card)
    assert run("report", folder, *whose, *asked)[0] == 0
    text = page.read_text(encoding="utf-8")
    tables = re.findall(r'<table role="table" aria-label="(.*?)"', text)
    assert len(tables) == 11
    assert not unlisted("report", tables)
    assert not re.search(r"\d\d:\d\d", text), "an hour tells how long fits take"
    card_text = card.read_text(encoding="utf-8")
    front, body = card_text.split("---\n")[1:3]
    keys = [line.partition(":")[0] for line in front.splitlines()]
    assert not unlisted("card", [*keys, *re.findall(r"^## (.*)$", body, re.M)])
    n_rows = open_features(features).metadata["n_rows"]
    # not where a chart has its lines, which depends on the size of its letters
    places = r' (?:d|x|y|transform)="[^"]*"'
    for shown in (re.sub(places, "", text), card_text):
        assert not re.search(rf"\b({n_rows}|240)\b", shown)
    changes = [
        change
        for line in ledger.read_text(encoding="utf-8")[2 * MARK_BYTES :].splitlines()
        for change in json.loads(line.partition(" ")[2])
    ]
    assert {table for _, table, _ in changes} == {"privfeat_budget", "privfeat_charge"}
    assert not unlisted("ledger", {name for *_, row in changes for name in row})
