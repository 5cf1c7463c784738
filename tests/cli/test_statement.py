import json

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
