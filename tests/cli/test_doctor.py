import json
import sys
from copy import deepcopy
from importlib import metadata

import pytest

import privfeat
from privfeat.cli import doctor
from privfeat.estimation import fitting


@pytest.mark.slow
def test_doctor_says_versions_devices_and_the_cache(run):
    status, out, err = run("doctor")
    assert (status, err) == (0, "")
    assert out.startswith(f"privfeat {privfeat.__version__}, Python ")
    assert f"  jax {metadata.version('jax')}\n" in out
    assert "  cpu:0: computes exactly\n" in out
    assert fitting.VARIABLE in out


@pytest.mark.slow
def test_doctor_prints_json(run):
    status, out, _ = run("doctor", "--json")
    assert status == 0
    found = json.loads(out)
    assert found["devices"] == {"names": ["cpu:0"], "problem": None}
    assert found["packages"]["numpy"] == metadata.version("numpy")
    assert found["compiled_code"]["folder"] == fitting.folder_of_compiled_code()


@pytest.mark.slow
def test_doctor_fails_where_no_fit_can_run(run, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    status, out, err = run("doctor")
    assert status == 1
    assert "xla_cpu_enable_fast_math" in out
    assert "no private fit can run here" in err


@pytest.fixture(scope="module")
def findings():
    return doctor.findings()


def test_doctor_names_what_an_extra_lacks(findings):
    found = deepcopy(findings)
    found["packages"]["torch"] = None
    found["extras"]["extract"] = ["torch"]
    lines = doctor.in_words(found)
    assert "  torch missing" in lines
    assert "  extract: pip install 'privfeat[extract]' brings torch" in lines


@pytest.mark.parametrize("extra", ["extract", "train", "audit", "postgres", "report"])
def test_doctor_knows_the_extras(findings, extra):
    assert extra in findings["extras"]


def test_doctor_imports_what_it_calls_ready(tmp_path, monkeypatch):
    """A torchvision of another build than torch has a version that fits."""
    said = "operator torchvision::nms\n does not exist"
    (tmp_path / "timm.py").write_text(f"raise RuntimeError({said!r})\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "timm", raising=False)
    why = "operator torchvision::nms does not exist"
    assert doctor.why_broken("timm") == why
    (tmp_path / "timm.py").write_text("import no_such_package\n")
    assert doctor.why_broken("timm") == "No module named 'no_such_package'"


def test_doctor_says_what_cannot_be_imported(findings):
    found = findings | {"broken": {"timm": "no such operator"}}
    lines = doctor.in_words(found | {"extras": {"extract": [], "plot": []}})
    told = "timm is installed, but cannot be imported: no such operator"
    assert f"  extract: {told}" in lines
    assert "  plot: ready" in lines


def test_doctor_can_import_every_package_of_an_extra(findings):
    assert findings["broken"] == {}
    assert doctor.why_broken("no-such-package") is None
