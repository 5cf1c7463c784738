"""From a CSV file to a signed report, as the guide does it."""

import time

import pytest

from privfeat import PrivacyLedger
from tests.pages.blocks import GUIDES, blocks_of, run_blocks

BLOCKS = blocks_of(GUIDES / "signed-report.md")
COMMANDS = [line for b in BLOCKS if b.language == "sh" for line in b.commands]


def test_guide_has_six_commands():
    assert len(COMMANDS) == 6
    assert all(command.startswith("privfeat ") for command in COMMANDS)


def test_guide_ends_with_a_report_to_sign_in_three_minutes(tmp_path, monkeypatch):
    """It takes a tenth of that; `benchmarks/signed_report.py` measures it."""
    pytest.importorskip("jinja2")
    monkeypatch.chdir(tmp_path)
    begun = time.monotonic()
    run_blocks(BLOCKS, {"__name__": "pages"})
    assert time.monotonic() - begun < 180.0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for part in (
        "<h1>Diagnosis of biopsies</h1>",
        "Dr. Ada Example",
        "<h2>Signature</h2>",
        "people with several rows",
        '<td role="cell">malignant</td>',
        'data-label="may be">0.05 to 0.17</td>',
        "private evaluation of a model",
        "sha256sum model.json arrays-",
    ):
        assert part.lower() in page.lower(), part
    assert 'class="warn"' not in page
    history = PrivacyLedger(tmp_path / "clinic.ledger", dataset="biopsies").history
    assert [charge.estimator for charge in history] == ["DPFC", "PrivateEvaluation"]
