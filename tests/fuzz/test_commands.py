"""Command lines of any words: a status and one line, never a traceback."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privfeat import cli
from privfeat.data import write_features
from privfeat_extract import cli as extract_cli

words = st.one_of(
    st.text(max_size=6),
    st.sampled_from(
        ["0", "1", "-1", "nan", "inf", "1e-5", "1e999", "", "\0", "~", "/"]
    ),
)
FIT_OPTIONS = ["--epsilon", "--delta", "--rho", "--noise-multiplier", "--adjacency"]
FIT_OPTIONS += ["--accounting", "--seed", "--set", "--n-classes", "--max-labels"]
SETTINGS = ["clip_norm", "row_scaling", "n_iter", "alpha", "center", "classes", "what"]
EXTRACT_OPTIONS = ["--splits", "--resize", "--crop", "--mean", "--interpolation"]
EXTRACT_OPTIONS += ["--batch-size", "--precision", "--dtype", "--model-kwargs"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Return a feature file in a folder of its own, where the commands run."""
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
    write_features("a.h5", {"train": (X, np.arange(12) % 2)}, class_names=["p", "q"])
    return tmp_path


def check(main, argv, capsys, tried):
    """Run a command line in this process; only argparse may leave it."""
    try:
        status = main(argv)
    except SystemExit as stop:
        status = stop.code
    captured = capsys.readouterr()
    assert status in (0, 1, 2)
    assert "Traceback" not in captured.err
    if status == 1:
        assert captured.err.splitlines()[-1].startswith(("privfeat", "\x1b"))
    tried.append(f"with status {status}")


@pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
def test_privfeat_tells_what_is_wrong_in_a_line(place, capsys, tried, examples):
    options = st.lists(st.tuples(st.sampled_from(FIT_OPTIONS), words), max_size=3)
    settings = st.tuples(st.sampled_from(SETTINGS), words).map("=".join)

    @examples(20)
    @given(options=options, setting=settings, source=st.one_of(words, st.just("a.h5")))
    def attempt(options, setting, source):
        argv = ["fit", "--estimator", "DPLeastSquares", "--train", source]
        argv += ["--out", "model", "--overwrite", "--quiet", "--set", setting]
        for name, value in options:
            argv += [f"{name}={value}"]
        check(cli.main, argv, capsys, tried)

    attempt()


def test_privfeat_takes_any_words(place, capsys, tried, examples):
    verbs = st.sampled_from(["predict", "statement", "fit", "--version", "--debu", "x"])
    known = st.sampled_from(
        ["--model", "--features", "--out", "a.h5", "a.h5:train", "."]
    )

    @examples(60)
    @given(verb=verbs, rest=st.lists(st.one_of(known, words), max_size=6))
    def attempt(verb, rest):
        check(cli.main, [verb, *rest], capsys, tried)

    attempt()


def test_privfeat_extract_tells_what_is_wrong_in_a_line(place, capsys, tried, examples):
    pytest.importorskip("kymatio")
    options = st.lists(st.tuples(st.sampled_from(EXTRACT_OPTIONS), words), max_size=2)
    sources = st.one_of(words, st.just("digits"), st.just("a.h5"), st.just("."))
    targets = st.one_of(words, st.just("out.h5"))

    @examples(20)
    @given(options=options, source=sources, target=targets)
    def attempt(options, source, target):
        argv = [f"--data={source}", "--model=scattering", f"--out={target}", "--quiet"]
        argv += ["--limit=1", "--overwrite", "--device=cpu"]
        for name, value in options:
            argv += [f"{name}={value}"]
        check(extract_cli.main, argv, capsys, tried)

    attempt()


def test_overlap_takes_any_words(place, capsys, tried, examples):
    known = st.sampled_from(["a.h5", "--out", "--threshold", "--pairs", "."])

    @examples(30)
    @given(rest=st.lists(st.one_of(known, words), max_size=5))
    def attempt(rest):
        check(extract_cli.main, ["overlap", *rest], capsys, tried)

    attempt()
