import json

import pytest

from privfeat import persistence


def test_report_writes_page_and_card(run, model, features, tmp_path):
    ledger, audit = tmp_path / "ledger.json", tmp_path / "audit.json"
    ledger.write_text(json.dumps([{"what": "an earlier fit", "epsilon": 0.5}]))
    audit.write_text(json.dumps({"lower bound": 0.125}))
    page, card = tmp_path / "report.html", tmp_path / "README.md"
    status, out, err = run(
        *("report", model, "--out", page, "--test", features, "--ledger", ledger),
        *("--audit", audit, "--card", card, "--title", "Mine", "--license", "mit"),
    )
    assert (status, err) == (0, "")
    assert out == f"{page} written\n{card} written\n"
    text = page.read_text(encoding="utf-8")
    for part in (
        "<h1>Mine</h1>",
        "an earlier fit",
        "0.125",
        "tiny.h5",
        "feature_dtype",
    ):
        assert part in text
    assert "DPLeastSquares(" in text
    assert f"{persistence.load(model).privacy_.mu:.6g}" in text
    assert 'license: "mit"' in card.read_text(encoding="utf-8")


def test_report_needs_only_a_model(run, model, tmp_path):
    page = tmp_path / "report.html"
    assert run("report", model, "--out", page)[0] == 0
    text = page.read_text(encoding="utf-8")
    assert "DPLeastSquares with epsilon = 20" in text
    assert "Accuracy and calibration" not in text


@pytest.mark.parametrize(
    ("option", "content", "message"),
    [
        ("--ledger", "{}", "--ledger must hold a list"),
        ("--ledger", "[1]", "--ledger must hold a list"),
        ("--audit", "[]", "--audit must hold an object"),
        ("--audit", "{", "--audit must be a JSON file"),
    ],
)
def test_report_refuses_other_files(fails, model, tmp_path, option, content, message):
    path = tmp_path / "given.json"
    path.write_text(content)
    page = tmp_path / "report.html"
    assert message in fails("report", model, "--out", page, option, path)
    assert not page.exists()
