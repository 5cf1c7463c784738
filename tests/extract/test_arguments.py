import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from privfeat.data import open_features, write_features
from privfeat.data.splits import SPLIT_NAMES
from privfeat_extract import overlap
from privfeat_extract.arguments import Network, extract_parser, parse

BASE = ["--data", "d", "--model", "m", "--out", "o.h5"]


def test_parse_fills_in_defaults():
    options = parse(BASE)
    assert options.views == 1
    (network,) = options.networks
    assert network == Network("m")
    assert network.pretrained
    assert options.channels_last
    assert options.dtype == "float16"
    assert options.splits is None
    assert options.workers is None


def test_parse_reads_model_kwargs_by_type():
    pairs = ["a=1", "b=0.5", "c=same", "d=true", "e=None", "f=x=y"]
    (network,) = parse([*BASE, "--model-kwargs", *pairs]).networks
    assert network.model_kwargs == {
        "a": 1,
        "b": 0.5,
        "c": "same",
        "d": True,
        "e": None,
        "f": "x=y",
    }


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], (384, 256)),
        (["--crop", "128"], (192, 128)),
        (["--resize", "300"], (300, 256)),
        (["--resize", "96"], (96, 96)),
        (["--resize", "128", "--crop", "128"], (128, 128)),
    ],
)
def test_sizes_complete_each_other(given, expected):
    assert parse([*BASE, *given]).sizes(384, 256) == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--crop", "64", "--resize", "32"], "--crop must be at most --resize (32)"),
        (["--mean", "0.5", "0.5"], "--mean must be 1 or 3 numbers"),
        (["--mean", "nan"], "must be finite"),
        (["--std", "0"], "--std must be > 0"),
        (["--std", "x"], "must be a number"),
        (["--limit", "0"], "must be a whole number > 0"),
        (["--workers", "-1"], "must be a whole number > 0"),
        (["--model-kwargs", "pad"], "must be KEY=VALUE"),
        (["--splits", "train", "train"], "--splits must be different"),
        (["--resume", "--overwrite"], "not allowed with"),
        (["--interpolation", "cubic"], "invalid choice"),
        (["--layers", "1", "first"], "must be a whole number or 'output'"),
        (["--layers", "1", "1"], "--layers must be different"),
        (["--pool", "max", "--model-kwargs", "global_pool=avg"], "must not both be"),
        (["--views", "0"], "invalid choice: 0"),
        (["--views", "two"], "invalid int value: 'two'"),
        (["--model", "scattering"], "--model scattering must be the only --model"),
    ],
)
def test_parse_refuses_wrong_arguments(given, message, capsys):
    with pytest.raises(SystemExit) as stopped:
        parse([*BASE, *given])
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "value"),
    [("--std", "0.5"), ("--pool", "max"), ("--layers", "1"), ("--views", "2")],
)
def test_parse_refuses_for_scattering_what_it_lacks(option, value, capsys):
    base = ["--data", "d", "--model", "scattering", "--out", "o.h5"]
    with pytest.raises(SystemExit):
        parse([*base, option, value])
    assert f"--model scattering does not take {option}." in capsys.readouterr().err


def test_options_of_a_model_are_those_behind_it():
    """Those before the first are of all."""
    argv = ["--data", "d", "--out", "o", "--pool", "max", "--model", "a"]
    argv += ["--checkpoint", "a.pth", "--model", "b", "--pool", "avg"]
    argv += ["--no-pretrained", "--layers", "-2", "output", "--model", "c"]
    assert parse(argv).networks == (
        Network("a", checkpoint=Path("a.pth"), pool="max"),
        Network("b", pretrained=False, pool="avg", layers=(-2, "output")),
        Network("c", pool="max"),
    )


def test_help_is_quick_to_load():
    """It must not wait for torch or timm."""
    code = (
        "import sys, privfeat_extract.cli as cli\n"
        "try: cli.main(['--help'])\n"
        "except SystemExit: pass\n"
        "assert not {'torch', 'timm', 'h5py', 'PIL'} & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "privfeat-extract --data digits --model scattering" in done.stdout
    assert ", ".join(SPLIT_NAMES) in " ".join(done.stdout.split())


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh", "fish"])
def test_completion_knows_options_and_the_verb(shell, run):
    """Options that a run needs may be missing."""
    status, out, err = run("--completion", shell)
    assert (status, err) == (0, "")
    for word in ("weights-license", "overlap"):
        assert word in out
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=out, text=True, check=True)
        assert "_overlap___remove_COMPGEN=_shtab_compgen_files" in out


def examples_of(parser):
    """Return the commands of a help, as words after the name of the program."""
    text = parser.format_help().replace("\\\n", "")
    program = r"^  (?:privfeat-extract|torchrun .* -m privfeat_extract) (.*)$"
    return [shlex.split(words) for words in re.findall(program, text, re.M)]


def test_examples_of_help_parse():
    """Most need weights or the hub; the tests of pages run their like."""
    shown = examples_of(extract_parser())
    assert len(shown) == 5
    for words in shown:
        assert parse(words).out
    for words in examples_of(overlap.overlap_parser()):
        assert overlap.overlap_parser().parse_args(words[1:])


@pytest.mark.slow
def test_example_of_digits_runs(run, tmp_path, monkeypatch):
    """It needs neither weights nor a network."""
    pytest.importorskip("kymatio")
    monkeypatch.chdir(tmp_path)
    (words,) = [w for w in examples_of(extract_parser()) if "digits" in w]
    status, _, err = run(*words)
    assert status == 0, err
    file = open_features("digits.h5")
    assert len(file["train"].y) + len(file["test"].y) == 1797


def test_examples_of_overlap_run(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(0).normal(size=(30, 8)).astype(np.float32)
    for name, part in (("photos.h5", rows[:20]), ("public.h5", rows[10:])):
        write_features(name, {"train": (part, np.arange(20) % 2)})
    _, _, shown = overlap.overlap_parser().format_help().partition("for example:\n")
    for line in shown.splitlines():
        status, out, _ = run(*shlex.split(line)[1:])
        assert status == 0
        assert "10 of 20 rows have a near-duplicate" in out
    assert {"pairs.json", "apart.h5"} < {path.name for path in tmp_path.iterdir()}
