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
        close_to_others(folder)
        find_the_primary(folder)
        damage_and_repair(folder)
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


def sql(folder, role, command, *, status=0):
    asked = ("-h", folder, "-U", role, "privacy", "-c", command)
    done = subprocess.run([find_program("psql"), *asked], check=False)
    assert done.returncode == status


def close_to_others(folder):
    """A role of another team may not connect, and those with a grant still work."""
    sql(folder, "tester", "CREATE ROLE stranger LOGIN")
    sql(folder, "stranger", "SELECT 1")
    text = (GUIDES / "postgres.md").read_text(encoding="utf-8")
    for command in (
        "REVOKE CONNECT, TEMPORARY ON DATABASE privacy FROM PUBLIC",
        "GRANT CONNECT ON DATABASE privacy TO ann",
    ):
        assert f"`{command}`" in text
        sql(folder, "tester", command)
    sql(folder, "stranger", "SELECT 1", status=2)
    charge = ("fit", "--estimator", "DPLeastSquares", "--epsilon", "0.1", "--quiet")
    url = f"postgresql://ann@/privacy?host={folder}"
    named = ("--ledger", url, "--dataset", "digits", "--out", "again")
    assert privfeat([*charge, "--train", "quickstart/digits.h5", *named]) == 0


def find_the_primary(folder):
    """All hosts may stand in the parameters of the URL, and not before the slash."""
    hosts = f"host={folder}/none,{folder}&port=5432,5432"
    url = f"postgresql://ann@/privacy?{hosts}&target_session_attrs=read-write"
    assert privfeat(["budget", "show", url]) == 0
    assert privfeat(["budget", "show", "postgresql://ann@db1,db2/privacy"]) == 1


def damage_and_repair(folder):
    """A row too many is deleted alone; other checksums lock the whole data set."""
    show = ["budget", "show", f"postgresql://ann@/privacy?host={folder}"]
    columns = "estimator, asked, statement, event, sha256"
    row = f"SELECT dataset, 3, {columns} FROM privfeat.privfeat_charge WHERE number = 2"
    more = f"INSERT INTO privfeat.privfeat_charge (dataset, number, {columns}) {row}"
    sql(folder, "ann", more)
    assert privfeat(show) == 1
    sql(folder, "tester", "DELETE FROM privfeat.privfeat_charge WHERE number = 3")
    assert privfeat(show) == 0
    sql(folder, "ann", "UPDATE privfeat.privfeat_budget SET sha256 = '00'")
    assert privfeat(show) == 1
