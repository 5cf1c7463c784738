import json
from importlib import metadata

import pytest

import privfeat
from privfeat.cli import doctor
from privfeat.estimation import compilation


def test_doctor_says_versions_devices_and_the_cache(run):
    status, out, err = run("doctor")
    assert (status, err) == (0, "")
    assert out.startswith(f"privfeat {privfeat.__version__}, Python ")
    assert f"  jax {metadata.version('jax')}\n" in out
    assert "  cpu:0: computes exactly\n" in out
    assert compilation.VARIABLE in out


def test_doctor_prints_json(run):
    status, out, _ = run("doctor", "--json")
    assert status == 0
    found = json.loads(out)
    assert found["devices"] == {"names": ["cpu:0"], "problem": None}
    assert found["packages"]["numpy"] == metadata.version("numpy")
    assert found["compiled_code"]["folder"] == compilation.folder_of_compiled_code()


def test_doctor_fails_where_no_fit_can_run(run, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    status, out, err = run("doctor")
    assert status == 1
    assert "xla_cpu_enable_fast_math" in out
    assert "no private fit can run here" in err


def test_doctor_names_what_an_extra_lacks():
    found = doctor.findings()
    found["packages"]["torch"] = None
    found["extras"]["extract"] = ["torch"]
    lines = doctor.in_words(found)
    assert "  torch missing" in lines
    assert "  extract: pip install 'privfeat[extract]' brings torch" in lines


@pytest.mark.parametrize("extra", ["extract", "train", "audit", "postgres", "report"])
def test_doctor_knows_the_extras(extra):
    assert extra in doctor.findings()["extras"]
