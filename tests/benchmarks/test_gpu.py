"""That one command measures an accelerator, whatever a part of it comes to."""

import json

import gpu
import pytest
from _processes import run_fresh

SCRIPT = """
import json, sys, time
part = sys.argv[1]
if part == "rates":
    import no_package_of_this_name
if part == "DPFC":
    time.sleep(60)
found = {"rows": [["it", " ".join(sys.argv[2:]), "-", "yes"]]}
print(json.dumps({"device": "x", "backend": "gpu", "jax": "0", "torch": "0"} | found))
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    path = tmp_path / "parts.py"
    path.write_text(SCRIPT)
    monkeypatch.setattr(gpu, "PARTS", path)
    monkeypatch.setitem(gpu.LIMITS, "DPFC", 0.2)


def run(monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["gpu.py", *map(str, arguments)])
    gpu.main()


def test_parts_that_fail_say_why_and_the_others_go_on(
    script, tmp_path, monkeypatch, capsys
):
    out = tmp_path / "gpu.json"
    run(monkeypatch, "--only", "rates", "DPFC", "replay", "--out", out)
    found = json.loads(out.read_text())
    rows = found["tables"]["gpu"]["rows"]
    assert rows[0][:2] == [
        "rates",
        "not measured: exit status 1: ModuleNotFoundError: No module named "
        "'no_package_of_this_name'",
    ]
    assert rows[1][:2] == ["DPFC", "not measured: stopped after 0.2 s"]
    assert rows[2] == ["replay", "it", "", "-", "yes"]
    assert list(found["parts"]) == ["rates", "DPFC", "replay"]
    assert "| replay | it" in capsys.readouterr().out


def test_no_part_begins_after_the_time_is_up(script, monkeypatch, capsys):
    monkeypatch.setattr(gpu, "MINUTES", 0)
    run(monkeypatch, "--only", "replay")
    assert "not measured: no time was left" in capsys.readouterr().out


def test_all_parts_fit_into_ten_minutes():
    assert gpu.MINUTES < 10
    assert max(gpu.LIMITS.values()) < 60 * gpu.MINUTES


def test_sizes_of_an_accelerator_are_not_run_on_a_cpu(monkeypatch):
    cpu = {"device": "cpu", "backend": "cpu", "jax": "0", "torch": "0"}
    monkeypatch.setattr(gpu, "run_fresh", lambda *_, **__: cpu)
    with pytest.raises(SystemExit, match="Pass --toy"):
        run(monkeypatch)


def test_a_device_that_cannot_be_had_is_named(script, monkeypatch, tmp_path):
    monkeypatch.setattr(gpu, "PARTS", tmp_path / "none.py")
    with pytest.raises(SystemExit, match="JAX must find a device, and did not"):
        run(monkeypatch)


def test_the_command_itself_needs_the_standard_library_alone():
    """Without site-packages it gets as far as to look for JAX."""
    command = "import runpy, sys; sys.argv = ['gpu.py']; sys.path[:0] = [%r]; "
    command += "sys.modules['jax'] = None; runpy.run_path(%r, run_name='gpu'); "
    folder = gpu.PARTS.parent
    code = command % (str(folder), str(folder / "gpu.py"))
    assert run_fresh("-c", [code + "print('{\"a\": 1}')"]) == {"a": 1}


@pytest.mark.slow
def test_every_part_runs_at_toy_size_on_any_device(tmp_path, monkeypatch, capsys):
    for name in ("timm", "sklearn", "optax"):
        pytest.importorskip(name)
    out = tmp_path / "gpu.json"
    run(monkeypatch, "--toy", "--out", out)
    found = json.loads(out.read_text())
    assert found["toy"]
    assert list(found["parts"]) == list(gpu.LIMITS)
    rows = found["tables"]["gpu"]["rows"]
    assert not [row for row in rows if "not measured" in row[1]]
    assert {row[0] for row in rows} == set(gpu.LIMITS)
    assert {row[-1] for row in rows if row[0] in ("equality", "replay")} == {"yes"}
