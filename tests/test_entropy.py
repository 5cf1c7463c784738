"""No test fails by chance: what `tests/entropy.py` promises, and what it cannot reach.

Other processes draw from the operating system. What tests fit there must be seeded, or
listed in ``FRESH`` and neither scored nor predicted with.
"""

import ast
import textwrap
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import privfeat
from privfeat import DPFC, DPLeastSquares
from privfeat.audit.random_numbers import make_rng
from privfeat.core.noise.keys import KeyStream
from tests.entropy import ENTROPY, LIMIT, total_rate

TESTS = Path(__file__).parent
ESTIMATORS = {name for name in privfeat.__all__ if name.startswith("DP")}
SCORES = {"score", "predict", "predict_proba", "decision_function", "best_score_"}
# Unseeded fits in other processes, and what their tests ask of them for every noise.
FRESH = {
    "core/sums/test_devices.py code": "that a fit in a fork is refused",
    "core/sums/test_devices.py fits": "that a fit in a fork is refused",
    "linear/dying.py fit_until_killed": "that a killed fit stays charged",
    "linear/processes.py different": "that the fits are refused",
    "linear/processes.py main": "that all processes have one model",
    "linear/processes.py refusal": "that the fit is refused",
    "linear/test_rows.py code": "that the fit is refused",
    "old_models.py made": "that a saved model is read, whatever it holds",
    "test_compilation.py code": "which files are left",
    "walk.py calls": "the way of a fit, not what it releases",
    "networks/dying.py make_classifier": "that a killed fit goes on for one charge",
}


def drawn_by(make):
    clf = make().fit(np.eye(4)[np.arange(40) % 3], np.arange(40) % 3)
    assert not clf.privacy_.seeded
    return clf.coef_


@pytest.mark.parametrize("arithmetic", ["float64", "exact"])
@pytest.mark.parametrize("cls", [DPFC, DPLeastSquares])
def test_a_fit_under_one_name_is_the_same_again(cls, arithmetic):
    """Fails if the noise takes its bits from a door that was not replaced."""

    def make():
        return cls(rho=1.0, classes=range(3), arithmetic=arithmetic)

    with ENTROPY.named("one"):
        one, other = drawn_by(make), drawn_by(make)
    with ENTROPY.named("one"):
        np.testing.assert_array_equal(drawn_by(make), one)
    with ENTROPY.named("two"):
        assert np.all(drawn_by(make) != one)
    assert np.all(other != one)


def everything():
    """Return draws from all sources that tests have."""
    keys = KeyStream(None)
    drawn = [keys.draw_integer(), keys.draw_words(2).tolist(), make_rng(None).random()]
    return [*drawn, np.random.random()]  # noqa: NPY002


def test_names_decide_every_source():
    with ENTROPY.named("one"):
        one = everything()
        with ENTROPY.named("a fixture that the test asks for"):
            everything()
        more = everything()
    with ENTROPY.named("one"):
        assert [everything(), everything()] == [one, more]
    assert not any(left == right for left, right in zip(one, more, strict=True))


def test_names_decide_what_torch_draws():
    torch = pytest.importorskip("torch")
    drawn = []
    for name in ("one", "one", "two"):
        with ENTROPY.named(name):
            drawn.append(torch.rand(3).tolist())
    assert drawn[0] == drawn[1] != drawn[2]


def test_the_seed_of_torch_notes_no_lines(monkeypatch):
    """Else every test pays for it: it is the slowest call of most of them."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch, "manual_seed", None)
    with ENTROPY.named("one"):
        pass


@pytest.mark.fresh_noise(rate=2.0**-60)
def test_a_test_that_opts_out_draws_from_the_operating_system():
    one = KeyStream(None).draw_integer()
    with ENTROPY.named(None):
        assert KeyStream(None).draw_integer() != one
    with ENTROPY.named("one"):
        KeyStream(None).draw_integer()
    assert KeyStream(None).draw_integer() != one


def test_noise_outside_of_tests_is_refused():
    with ENTROPY.named(""), pytest.raises(RuntimeError, match="in tests and fixtures"):
        KeyStream(None).draw()


def marker(*args, **kwargs):
    return SimpleNamespace(args=args, kwargs=kwargs)


@pytest.mark.parametrize(
    "stated",
    [
        marker(),
        marker(1e-9),
        marker(rate=0.0),
        marker(rate=LIMIT),
        marker(rate=float("nan")),
        marker(rate=1e-9, reason="a"),
    ],
)
def test_fresh_noise_without_a_rate_is_refused(stated):
    with pytest.raises(pytest.UsageError, match="must state a rate"):
        total_rate([("a", stated)])


def test_rates_are_added_up():
    assert total_rate([]) == 0.0
    assert total_rate([("a", marker(rate=3e-7)), ("b", marker(rate=4e-7))]) == 7e-7
    with pytest.raises(pytest.UsageError, match="must sum to less than 1e-06"):
        total_rate([("a", marker(rate=6e-7)), ("b", marker(rate=6e-7))])


# What runs in other processes


def name_of(function):
    return getattr(function, "id", getattr(function, "attr", ""))


def code_in(tree):
    """Yield the programs that stand as texts in a file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [
                p.value if isinstance(p, ast.Constant) else "0" for p in node.values
            ]
            text = "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if "import" in text and "privfeat" in text:
            try:
                yield ast.parse(textwrap.dedent(text))
            except SyntaxError:
                continue


def functions_of(tree):
    """Yield each outermost function or class, and the module without them."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    for node in tree.body:
        if isinstance(node, kinds):
            yield node.name, node
    rest = [node for node in tree.body if not isinstance(node, kinds)]
    yield "code", ast.Module(rest, [])


def is_seeded(call, function):
    """Whether a seed is passed, by name or in the dictionary that is spread."""
    names = {keyword.arg for keyword in call.keywords}
    if "random_state" in names:
        return True
    spread = [k.value for k in call.keywords if k.arg is None]
    texts = {getattr(node, "value", None) for node in ast.walk(function)}
    return bool(spread) and "random_state" in texts


def fresh_fits(path, source):
    """Yield ``(place, whether it is scored)`` of unseeded fits in other processes."""
    tree = ast.parse(source)
    ours = Path(path).name
    runs_elsewhere = not ours.startswith(("test_", "conftest"))
    programs = [*code_in(tree), *([tree] if runs_elsewhere else [])]
    for program in programs:
        for name, function in functions_of(program):
            calls = [n for n in ast.walk(function) if isinstance(n, ast.Call)]
            made = [call for call in calls if name_of(call.func) in ESTIMATORS]
            if not all(is_seeded(call, function) for call in made):
                used = {name_of(node) for node in ast.walk(function)}
                yield f"{path} {name}", bool(used & SCORES)


def scored_in_workers(source):
    """Return the functions that score what several workers of joblib fitted."""
    found = []
    for name, function in functions_of(ast.parse(source)):
        nodes = list(ast.walk(function))
        many = any(
            isinstance(node, ast.keyword)
            and node.arg == "n_jobs"
            and getattr(node.value, "value", None) != 1
            for node in nodes
        )
        if many and {name_of(node) for node in nodes} & SCORES:
            found.append(name)
    return found


SOURCES = {
    path.relative_to(TESTS).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted(TESTS.rglob("*.py"))
    if path.name != Path(__file__).name
}


def test_fits_in_other_processes_are_seeded_or_listed():
    found = [fit for path, text in SOURCES.items() for fit in fresh_fits(path, text)]
    assert {place for place, _ in found} == set(FRESH)


def test_what_is_not_seeded_in_other_processes_is_not_scored():
    found = [fit for path, text in SOURCES.items() for fit in fresh_fits(path, text)]
    assert [place for place, scored in found if scored] == []
    assert [path for path, text in SOURCES.items() if scored_in_workers(text)] == []


@pytest.mark.parametrize(
    ("path", "source", "expected"),
    [
        ("a.py", "def f():\n    DPFC(epsilon=1).fit(X, y)", [("a.py f", False)]),
        ("a.py", "def f():\n    DPFC().fit(X, y).score(X, y)", [("a.py f", True)]),
        ("a.py", "def f():\n    DPFC(random_state=1).fit(X, y).score(X, y)", []),
        ("a.py", "def f(**o):\n    DPFC(**o).fit(X, y)", [("a.py f", False)]),
        ("a.py", "def f():\n    o = {'random_state': 1}\n    DPFC(**o)", []),
        ("test_a.py", "def f():\n    DPFC().fit(X, y).score(X, y)", []),
        (
            "test_a.py",
            "C = 'import privfeat; privfeat.DPFC().fit(X, y).score(X, y)'",
            [("test_a.py code", True)],
        ),
        (
            "test_a.py",
            "C = f'from privfeat import DPFC; DPFC(epsilon={e})'",
            [("test_a.py code", False)],
        ),
    ],
)
def test_the_check_notices_fits_in_other_processes(path, source, expected):
    assert list(fresh_fits(path, source)) == expected


def test_the_check_notices_scores_of_workers():
    text = "def f():\n    GridSearchCV(c, g, n_jobs={}).fit(X, y).best_score_"
    assert scored_in_workers(text.format(2)) == ["f"]
    assert scored_in_workers(text.format("many")) == ["f"]
    assert scored_in_workers(text.format(1)) == []
