import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import privfeat
from privfeat.cli import WAY_IN, build_parser, describe


def test_main_without_verb_shows_the_way_in_five_lines(run):
    status, out, err = run()
    assert (status, err) == (0, "")
    assert len(out.splitlines()) == 5
    assert "privfeat fit" in out


@pytest.mark.parametrize("line", WAY_IN.splitlines()[1:4])
def test_the_way_in_is_of_commands_that_parse(line):
    words = re.split(r"  +", line)[0].split()
    args = build_parser().parse_args(words[1:])
    assert args.verb == words[1]
    if args.verb == "report":
        assert args.out.endswith(".html")  # a browser opens it by this ending


def test_main_prints_what_lets_bash_complete(run):
    status, out, _ = run("--completion", "bash")
    assert status == 0
    assert "--epsilon" in out
    subprocess.run(["bash", "-n"], input=out, text=True, check=True)


def test_main_with_an_unknown_option_is_a_usage_error(run):
    status, _, err = run("statement", "model", "--nonsense")
    assert status == 2
    assert "unrecognized arguments: --nonsense" in err


def test_main_prints_the_version(run):
    assert run("--version") == (0, f"{privfeat.__version__}\n", "")


@pytest.mark.parametrize("verb", ["fit", "predict", "statement", "audit", "quickstart"])
def test_main_explains_each_verb(run, verb):
    status, out, _ = run(verb, "--help")
    assert status == 0
    assert f"usage: privfeat {verb}" in out


def test_main_puts_an_unforeseen_error_on_one_line(fails, plant):
    def fail(path):
        raise RuntimeError("first\n  second")

    plant("load of a statement", fail)
    assert fails("statement", "model") == "privfeat: error: first second\n"


def test_main_shows_the_traceback_when_asked(run, plant):
    def fail(path):
        raise RuntimeError("deep inside")

    plant("load of a statement", fail)
    status, _, err = run("--debug", "statement", "model")
    assert status == 1
    assert "Traceback" in err
    assert err.endswith("privfeat: error: deep inside\n")


def test_main_says_when_it_was_interrupted(run, plant):
    def interrupt(path):
        raise KeyboardInterrupt

    plant("load of a statement", interrupt)
    assert run("statement", "m") == (130, "", "privfeat: interrupted.\n")


def test_main_puts_a_warning_on_one_line(run, plant, model):
    def warn(path):
        warnings.warn("careful\nnow", privfeat.PrivacyWarning, stacklevel=1)
        return "statement"

    plant("load of a statement", warn)
    status, out, err = run("statement", model)
    assert (status, out) == (0, "statement\n")
    assert err == "privfeat: warning: careful now\n"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (KeyError("split must be 'a'."), "split must be 'a'."),
        (FileNotFoundError(2, "No such file", "a.h5"), "a.h5: No such file"),
        (OSError("disk full"), "disk full"),
        (ValueError(), "ValueError"),
        (ValueError("a\n\tb"), "a b"),
    ],
)
def test_describe_gives_one_plain_line(error, text):
    assert describe(error) == text


def test_console_script_returns_the_status(tmp_path):
    script = Path(sys.executable).with_name("privfeat")
    done = subprocess.run(
        [script, "statement", tmp_path / "none"], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("privfeat: error: ")
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_output_to_a_closed_pipe_is_no_crash(model):
    code = f"from privfeat.cli import main; exit(main({['statement', model]}))"
    done = subprocess.run(
        ["bash", "-c", 'exec "$0" -c "$1" > >(exec true)', sys.executable, code],
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
