import shutil
import sys
import tempfile

import numpy as np
import pytest

from privfeat import DPLeastSquares, open_features, persistence
from privfeat.data import write_features
from tests.cli.tiny import CLASS_NAMES, FIT, fit_arguments, make_split


def test_fit_saves_a_model_with_the_asked_budget(features, model):
    loaded = persistence.load(model)
    assert isinstance(loaded, DPLeastSquares)
    assert loaded.privacy_.delta == 1e-6
    assert 19.9 < loaded.privacy_.epsilon <= 20
    assert not loaded.privacy_.seeded
    test = open_features(features)["test"]
    assert loaded.score(test.X, test.y) > 0.9


def test_fit_takes_the_classes_of_the_file_not_of_the_labels(model):
    """Nobody in the file is a dog; that must not show."""
    assert persistence.load(model).classes_.tolist() == [0, 1, 2, 3]
    assert persistence.load_class_names(model) == list(CLASS_NAMES)


def test_fit_prints_accuracy_caveat_and_statement(run, features, tmp_path):
    arguments = fit_arguments(
        features, tmp_path / "m", "--test", features, "--test-is-public"
    )
    status, out, _ = run(*arguments)
    assert status == 0
    loaded = persistence.load(tmp_path / "m")
    test = open_features(features)["test"]
    assert f"test accuracy {loaded.score(test.X, test.y):.4f}" in out
    assert "the statement does not cover them" in out
    assert str(loaded.privacy_) in out


def test_fit_prints_no_accuracy_without_test_rows(run, features, tmp_path):
    _, out, _ = run(*fit_arguments(features, tmp_path / "m"))
    assert "test accuracy" not in out


def test_fit_shows_no_exact_figure_of_rows_that_nobody_called_public(
    fails, features, tmp_path
):
    message = fails(*fit_arguments(features, tmp_path / "m", "--test", features))
    assert "Pass --test-is-public if they are. If not, leave --test out" in message
    assert not (tmp_path / "m").exists()


def test_fit_is_silent_when_told(run, features, tmp_path):
    arguments = fit_arguments(
        features, tmp_path / "m", "--test", features, "--test-is-public", "--quiet"
    )
    assert run(*arguments) == (0, "", "")


def test_fit_shows_bars_on_a_terminal_only(run, features, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    _, _, err = run(*fit_arguments(features, tmp_path / "a"))
    assert err.startswith("fitting DPLeastSquares on ")
    assert persistence.load(tmp_path / "a").verbose == 0  # not part of the model
    monkeypatch.undo()
    (line,) = run(*fit_arguments(features, tmp_path / "b"))[2].splitlines()
    assert line.startswith("DPLeastSquares: epsilon = ")


def test_fit_passes_all_privacy_options(run, features, tmp_path):
    options = "--rho 3 --delta 1e-4 --adjacency replace_one --accounting zcdp".split()
    status, *_ = run(*FIT, *options, "--train", features, "--out", tmp_path / "m")
    assert status == 0
    statement = persistence.load_statement(tmp_path / "m")
    assert statement.rho == pytest.approx(3)
    assert statement.delta == 1e-4
    assert statement.adjacency == "replace_one"
    assert statement.accounting == "zcdp"


def test_fit_samples_records_by_renyi_divergences(run, features, tmp_path):
    options = "--estimator DPAdamLinear --accounting rdp --noise-multiplier 3".split()
    sampling = ("--set", "sampling_prob=0.5", "--set", "n_iter=2")
    files = ("--train", features, "--out", tmp_path / "m")
    assert run("fit", *options, *sampling, *files)[0] == 0
    statement = persistence.load_statement(tmp_path / "m")
    assert (statement.accounting, statement.mu) == ("rdp", None)
    assert "Rényi divergences" in run("statement", tmp_path / "m")[1]


def test_fit_passes_the_arithmetic(run, features, tmp_path):
    arguments = ("--arithmetic", "exact", "--train", features, "--out", tmp_path / "m")
    assert run(*FIT, *arguments)[0] == 0
    assert persistence.load_statement(tmp_path / "m").arithmetic == "exact"


def test_fit_passes_the_noise_multiplier(run, features, tmp_path):
    arguments = ("--noise-multiplier", 2, "--train", features, "--out", tmp_path / "m")
    assert run(*FIT, *arguments)[0] == 0
    assert persistence.load(tmp_path / "m").noise_multiplier == 2


def test_fit_passes_other_parameters(run, features, tmp_path):
    settings = ("--set", "fit_intercept=false", "--set", "clip_norm=2.0")
    assert run(*fit_arguments(features, tmp_path / "m", *settings))[0] == 0
    loaded = persistence.load(tmp_path / "m")
    assert loaded.fit_intercept is False
    assert loaded.clip_norm == 2.0


def test_fit_with_a_seed_warns_and_says_so(run, features, tmp_path):
    status, out, err = run(*fit_arguments(features, tmp_path / "m", "--seed", "7"))
    assert status == 0
    assert "privfeat: warning: random_state" in err
    assert "SEEDED" in out
    assert persistence.load_statement(tmp_path / "m").seeded


def test_fit_without_a_seed_differs_each_time(run, features, model, tmp_path):
    options = ("--delta", "1e-6", "--quiet")
    assert run(*fit_arguments(features, tmp_path / "m", *options))[0] == 0
    first, second = persistence.load(model), persistence.load(tmp_path / "m")
    assert first.get_params() == second.get_params()
    assert np.all(first.coef_ != second.coef_)


def test_fit_refuses_two_budgets(run, features, tmp_path):
    status, _, err = run(*fit_arguments(features, tmp_path / "m", "--rho", "1"))
    assert status == 2
    assert "not allowed with argument" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--set", "no_such=1"), "DPLeastSquares has no parameter 'no_such'"),
        (("--set", "epsilon=1"), "must be given as --epsilon"),
        (("--set", "classes=[0,1]"), "must be given as --n-classes"),
        (("--epsilon", "-1"), "epsilon must be"),
        (("--epsilon", "nan"), "epsilon must be"),
        (("--delta", "2"), "delta must be in"),
        (("--n-classes", "3"), "--n-classes must be the 4 classes"),
        (("--train", "missing.h5"), "missing.h5"),
        (("--test", "missing.h5", "--test-is-public"), "missing.h5"),
    ],
)
def test_fit_that_fails_leaves_nothing(fails, features, tmp_path, options, message):
    out = tmp_path / "deep" / "m"
    assert message in fails(*fit_arguments(features, out, *options))
    assert list(tmp_path.iterdir()) == []


def test_fit_that_cannot_save_leaves_nothing(
    fails, features, tmp_path, monkeypatch, plant
):
    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device", "model.json")

    plant("write of a model file", fail)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    message = fails(*fit_arguments(features, tmp_path / "m", "--quiet"))
    assert "(No space left on device). It is lost. Its budget is spent." in message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("full", [False, True])
def test_fit_saves_elsewhere_what_it_has_paid_for(
    fails, features, model, tmp_path, monkeypatch, plant, full
):
    """The disk is full by now, or another command was faster."""
    fit = plant.genuine("fit of a linear model", of=DPLeastSquares)
    save = plant.genuine("write of a model file")

    def fit_beside_another(self, *args, **kwargs):
        shutil.copytree(model, tmp_path / "m", dirs_exist_ok=True)
        return fit(self, *args, **kwargs)

    def save_on_a_full_disk(path, content, **options):
        if path.parent == tmp_path / "m":
            raise OSError(28, "No space left on device", str(path))
        save(path, content, **options)

    if full:
        plant("write of a model file", save_on_a_full_disk)
    else:
        plant("fit of a linear model", fit_beside_another, of=DPLeastSquares)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    message = fails(*fit_arguments(features, tmp_path / "m", "--quiet"))
    assert ("No space left" if full else "must not hold a model") in message
    (rescued,) = tmp_path.glob("privfeat-*")
    assert f"It is in {rescued}: move it. Its budget is spent." in message
    assert persistence.load(rescued).privacy_.epsilon == 20


@pytest.mark.usefixtures("fit_is_forbidden")
def test_fit_keeps_an_earlier_model_and_spends_nothing(fails, features, model):
    before = persistence.load_statement(model)
    assert "--overwrite" in fails(*fit_arguments(features, model))
    assert persistence.load_statement(model) == before


@pytest.mark.usefixtures("fit_is_forbidden")
def test_fit_spends_nothing_for_an_unusable_folder(fails, features, tmp_path):
    (tmp_path / "file").touch()
    assert "must be a folder" in fails(*fit_arguments(features, tmp_path / "file"))
    assert fails(*fit_arguments(features, tmp_path / "file" / "below"))


@pytest.mark.usefixtures("fit_is_forbidden")
@pytest.mark.parametrize(
    ("n_features", "class_names", "message"),
    [
        (5, ["bee", "ant", "cat", "dog"], "must have the classes of"),
        (4, list(CLASS_NAMES), "must have 5 features"),
    ],
)
def test_fit_refuses_test_rows_of_another_kind(
    fails, features, tmp_path, n_features, class_names, message
):
    X, y = make_split(30, 2)
    other = tmp_path / "other.h5"
    write_features(other, {"test": (X[:, :n_features], y)}, class_names=class_names)
    arguments = fit_arguments(
        features, tmp_path / "m", "--test", other, "--test-is-public"
    )
    assert message in fails(*arguments)


def test_fit_replaces_a_model_when_told(run, features, tmp_path):
    assert run(*fit_arguments(features, tmp_path / "m"))[0] == 0
    first = persistence.load(tmp_path / "m")
    assert run(*fit_arguments(features, tmp_path / "m", "--overwrite"))[0] == 0
    assert np.any(persistence.load(tmp_path / "m").coef_ != first.coef_)


def test_fit_asks_for_the_classes_if_the_file_names_none(run, fails, tmp_path):
    path = tmp_path / "bare.h5"
    write_features(path, {"train": make_split(60, 0)})
    message = fails(*fit_arguments(path, tmp_path / "m"))
    assert "Pass --n-classes" in message
    assert run(*fit_arguments(path, tmp_path / "m", "--n-classes", "5"))[0] == 0
    assert persistence.load(tmp_path / "m").classes_.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("target", "seam", "sentence"),
    [
        (DPLeastSquares, "problem of a linear fit", "No budget was spent."),
        (
            DPLeastSquares,
            "solution of a linear fit",
            "The fit had drawn noise: its budget is spent.",
        ),
        (None, "save of a model", "Its budget is spent."),
    ],
    ids=[
        "DPLeastSquares-_problem-No budget was spent.",
        "DPLeastSquares-_solve-The fit had drawn noise: its budget is spent.",
        "privfeat.persistence-save-Its budget is spent.",
    ],
)
def test_fit_says_on_ctrl_c_whether_budget_was_spent(
    run, features, tmp_path, plant, target, seam, sentence
):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    plant(seam, interrupt, of=target)
    status, out, err = run(*fit_arguments(features, tmp_path / "m", "--quiet"))
    assert (status, out, err) == (130, "", f"privfeat: interrupted. {sentence}\n")


def test_fit_warns_of_delta_on_stderr_alone(run, features, tmp_path):
    """Of 240 rows, delta is above one over their number; no file says so."""
    options = ("--delta", "1e-2")
    status, out, err = run(*fit_arguments(features, tmp_path / "m", *options))
    assert status == 0
    assert "warning: delta should be well below one over" in err
    assert "got 0.01. Pass a smaller one." in err
    assert "well below" not in out
    assert "well below" not in (tmp_path / "m" / "model.json").read_text()
    assert "240" not in err


def test_fit_that_fails_after_the_charge_says_so(run, features, tmp_path, plant):
    def fail(*args, **kwargs):
        raise FloatingPointError("coefficients must be finite.")

    plant("solution of a linear fit", fail, of=DPLeastSquares)
    status, out, err = run(*fit_arguments(features, tmp_path / "m", "--quiet"))
    said = "coefficients must be finite. The fit had drawn noise: its budget is spent."
    assert (status, out, err) == (1, "", f"privfeat: error: {said}\n")
