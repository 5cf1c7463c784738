"""The commands of the guide for a ledger on PostgreSQL, on a server of the test."""

import shlex
import subprocess
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from privfeat import LedgerError, PrivacyLedger
from privfeat.cli import main as privfeat
from privfeat.data import write_features
from tests.cli.tiny import CLASS_NAMES, make_split
from tests.pages.blocks import GUIDES, blocks_of, run_command
from tests.postgres import find_program, postgres_server

pytestmark = pytest.mark.postgres


def test_guide_lets_a_colleague_charge_and_no_more(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quickstart").mkdir()
    splits = {"train": make_split(240, 0)}
    write_features("quickstart/digits.h5", splits, class_names=CLASS_NAMES)
    blocks = [b for b in blocks_of(GUIDES / "ledger.md") if b.section.endswith("SQL")]
    with postgres_server() as url:
        folder = urlsplit(url).query.removeprefix("host=")
        for command in (line for block in blocks for line in block.commands):
            here = command.replace("-h db.example -U admin", f"-h {folder} -U tester")
            for role, name in (("admin", "tester"), ("ann", "ann")):
                told = f"postgresql://{role}@db.example/privacy"
                here = here.replace(told, f"postgresql://{name}@/privacy?host={folder}")
            program, *words = shlex.split(here)
            if program == "privfeat":
                run_command(here)
            else:
                subprocess.run([find_program(program), *words], check=True)
        ledger = PrivacyLedger(
            f"postgresql://ann@/privacy?host={folder}", dataset="digits"
        )
        (charge,) = ledger.history
        assert ledger.remaining.epsilon < 3.0
        again = ("--dataset", "mine", "--epsilon", "100", "--delta", "1e-5")
        url = f"postgresql://ann@/privacy?host={folder}"
        assert privfeat(["budget", "create", url, *again]) == 1
        for forbidden in (
            "UPDATE privfeat.privfeat_budget SET epsilon = 30",
            "UPDATE privfeat.privfeat_charge SET statement = ''",
            "DELETE FROM privfeat.privfeat_charge",
            "DROP TABLE privfeat.privfeat_charge",
        ):
            asked = ("-h", folder, "-U", "ann", "privacy", "-c", forbidden)
            done = subprocess.run([find_program("psql"), *asked], check=False)
            assert done.returncode == 1
        watch(folder, charge.statement)
    assert (charge.who, charge.estimator) == ("Ann", "DPFC")
    assert charge.fitted is not None


def watch(folder, statement):
    """A reader, by the first two grants alone, may look and not charge."""
    for grant in (
        "CREATE ROLE watch LOGIN",
        "GRANT USAGE ON SCHEMA privfeat TO watch",
        "GRANT SELECT ON ALL TABLES IN SCHEMA privfeat TO watch",
    ):
        asked = ("-h", folder, "-U", "tester", "privacy", "-c", grant)
        subprocess.run([find_program("psql"), *asked], check=True)
    url = f"postgresql://watch@/privacy?host={folder}"
    assert privfeat(["budget", "show", url]) == 0
    assert privfeat(["budget", "history", url, "--dataset", "digits"]) == 0
    ledger = PrivacyLedger(url, dataset="digits")
    with pytest.raises(LedgerError, match="permission denied"):
        ledger.charge(replace(statement, charge=None), estimator="DPFC")
