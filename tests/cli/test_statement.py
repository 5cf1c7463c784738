import json
import shutil

from privfeat import persistence


def test_statement_prints_the_saved_statement(run, model):
    expected = f"{persistence.load(model).privacy_}\n"
    assert "epsilon" in expected
    assert run("statement", model) == (0, expected, "")


def test_statement_prints_json(run, model):
    status, out, _ = run("statement", model, "--json")
    assert status == 0
    statement = persistence.load(model).privacy_
    assert json.loads(out) == json.loads(statement.to_json())
    assert type(statement).from_json(out) == statement


def test_statement_refuses_a_damaged_model(fails, tmp_path):
    (tmp_path / "model.json").write_text("{")
    assert "is damaged" in fails("statement", tmp_path)


def test_statement_refuses_a_model_whose_arrays_are_damaged(fails, model, tmp_path):
    folder = shutil.copytree(model, tmp_path / "model")
    (arrays,) = folder.glob("arrays-*.npz")
    content = bytearray(arrays.read_bytes())
    content[len(content) // 2] ^= 1
    arrays.write_bytes(content)
    assert f"{arrays.name} does not match its checksum" in fails("statement", folder)
    arrays.unlink()
    assert f"{arrays.name} is missing" in fails("statement", folder, "--json")


def test_statement_prints_the_schema(run):
    status, out, _ = run("statement", "--schema")
    assert status == 0
    assert json.loads(out)["title"].startswith("Privacy statement")


def test_statement_needs_a_model_or_the_schema(fails):
    assert "statement needs DIR" in fails("statement")


def test_statement_adds_what_the_central_limit_says(run, fails, model):
    status, out, _ = run("statement", model, "--gdp")
    assert status == 0
    assert out.startswith(str(persistence.load(model).privacy_))
    assert "By the central limit epsilon would be about 20 " in out
    both = ("statement", model, "--gdp", "--json")
    assert "--gdp must not go with --json" in fails(*both)
