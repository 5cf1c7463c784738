"""A package that is not installed is named with the line that installs it, at once."""

import subprocess
import sys
from argparse import Namespace
from importlib import import_module
from importlib.util import find_spec

import pytest

import privfeat
from privfeat import DPLeastSquares, audit, export
from privfeat._checks import require
from privfeat.analysis.reliability import axes_or_new
from privfeat.analysis.utility import PrivacyUtilityDisplay
from privfeat.cli import main
from privfeat.cli.shared.estimators import load_tested
from privfeat.export.mlflow import log_model

drawn = PrivacyUtilityDisplay.from_estimators


def never(*args, **kwargs):
    pytest.fail("work began before the package was missed")


@pytest.fixture
def without(monkeypatch):
    """Return a function that takes packages away."""

    def take(*packages):
        for package in packages:
            monkeypatch.setitem(sys.modules, package, None)
        if "flax" in packages:  # as if nothing had imported the networks yet
            monkeypatch.delitem(sys.modules, "privfeat.networks", raising=False)
            monkeypatch.delitem(vars(privfeat), "DPSGDClassifier", raising=False)

    return take


def test_require_is_silent_about_what_is_there():
    require("a test", "pytest", extra="dev")


@pytest.mark.parametrize(
    ("package", "extra", "use"),
    [
        ("matplotlib", "plot", axes_or_new),
        (
            "matplotlib",
            "plot",
            lambda: PrivacyUtilityDisplay.from_estimators(
                {"a": never}, [1.0], 0, 0, 0, 0
            ),
        ),
        ("flax", "train", lambda: import_module("privfeat.networks")),
        ("onnx", "onnx", lambda: export.export_onnx(None, "m.onnx")),
        (
            "safetensors",
            "safetensors",
            lambda: export.export_safetensors(None, "m.safetensors"),
        ),
        (
            "huggingface_hub",
            "hub",
            lambda: export.push_to_hub("model", "me/model", card="card.md"),
        ),
        ("mlflow", "mlflow", lambda: log_model("model")),
        (
            "jax_privacy",
            "audit",
            lambda: audit.audit_one_run(DPLeastSquares(), [[1.0]], [0]),
        ),
    ],
)
def test_functions_name_what_to_install(without, package, extra, use):
    without(package)
    with pytest.raises(ImportError) as caught:
        use()
    assert str(caught.value).endswith(f"Run pip install 'privfeat[{extra}]'.")


@pytest.mark.parametrize(
    ("package", "extra", "command"),
    [
        ("jax_privacy", "audit", "audit --estimator DPFC"),
        ("flax", "train", "train --data folder --model mlp --out folder"),
        ("matplotlib", "plot", "sanity --estimator DPFC --plots folder"),
        ("matplotlib", "plot", "quickstart file.h5 --out folder"),
        ("matplotlib", "report", "report folder --out page.html"),
        ("jinja2", "report", "report folder --out page.html"),
    ],
)
def test_commands_name_what_to_install(without, plant, capsys, package, extra, command):
    without(package)
    for work in ("audit by replay", "audit of the noise", "audit by random labels"):
        plant(work, never)
    assert main(command.split()) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"Run pip install 'privfeat[{extra}]'." in captured.err


def test_networks_name_what_to_install_for_folders(without, tmp_path):
    pytest.importorskip("flax")
    from privfeat.networks import read_folder
    from privfeat.networks.training.resuming import check_folder

    without("orbax", "PIL")
    for use in (lambda: check_folder(tmp_path), lambda: read_folder(tmp_path)):
        with pytest.raises(ImportError, match=r"pip install 'privfeat\[train\]'"):
            use()


def test_an_image_names_what_to_install(without):
    """Each image was called damaged, and left out with --skip-bad."""
    from privfeat.data.pixels import decode

    without("PIL")
    with pytest.raises(ImportError, match=r"pip install 'privfeat\[extract\]'"):
        decode("a.png")


def test_a_linear_estimator_is_tested_without_networks(without):
    """`audit` and `sanity` of it need no flax, whose extra is that of networks."""
    without("flax")
    tested = Namespace(network=None, saved=None, estimator="DPFC")
    assert type(load_tested(tested)).__name__ == "DPFC"


@pytest.mark.slow
def test_import_of_all_names_takes_what_is_installed():
    code = (
        "import sys; sys.modules['flax'] = None\n"
        "from privfeat import *\n"
        "print(DPFC.__name__, 'DPSGDClassifier' in globals())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "DPFC False\n", done.stderr
    if find_spec("flax") is not None:
        assert {"DPSGDClassifier", "DPSGDRegressor"} < set(privfeat.__all__)
