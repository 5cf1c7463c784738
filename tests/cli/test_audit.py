import pytest

from tests.audit.faults import halve_noise

TINY = "--n-samples 60 --n-features 20 --n-classes 3".split()


def test_audit_prints_a_table_of_synthetic_rows(run):
    pytest.importorskip("jax_privacy")
    status, out, err = run("audit", "--estimator", "DPLeastSquares", *TINY)
    assert (status, err) == (0, "")
    assert "no private data may enter" in out
    assert "synthetic rows: 60 x 20, 3 classes" in out
    for part in ("ratio", "rms/declared", "with confidence 0.999999", "advantage"):
        assert part in out
    assert out.count("no fault found") == 3


def test_audit_of_users_makes_users_of_rows(run):
    pytest.importorskip("jax_privacy")
    command = ("audit", "--estimator", "DPLeastSquares", *TINY)
    status, out, _ = run(*command, "--set", "max_group_size=2")
    assert status == 0
    assert "Replay without the user of the longest row" in out
    assert out.count("no fault found") == 3


def test_audit_takes_a_public_file(run, features):
    pytest.importorskip("jax_privacy")
    status, out, _ = run("audit", "--estimator", "DPFC", "--public", features)
    assert status == 0
    assert "240 x 5, 4 classes" in out


def test_audit_keeps_the_seed_at_home(run, tmp_path):
    """Its file is published with the report: a fit may have the same options."""
    pytest.importorskip("jax_privacy")
    out = tmp_path / "audit.json"
    given = ("--set", "random_state=424242", "--set", "ridge=0.5", "--out", out)
    assert run("audit", "--estimator", "DPLeastSquares", *TINY, *given)[0] == 0
    text = out.read_text()
    assert "ridge=0.5" in text
    assert "424242" not in text


def test_audit_fails_on_a_fault(run, plant):
    pytest.importorskip("jax_privacy")
    halve_noise(plant)
    status, out, err = run("audit", "--estimator", "DPLeastSquares", *TINY)
    assert status == 1
    assert "noise     FAULT" in out
    assert "the audit found a fault" in err


def test_audit_refuses_a_shape_for_a_file(fails, features):
    err = fails(
        "audit", "--estimator", "DPFC", "--public", features, "--n-samples", "9"
    )
    assert "must not go with --public" in err


@pytest.mark.parametrize("bad", [["--n-samples", "5"], ["--n-classes", "1"]])
def test_audit_refuses_a_shape_that_is_too_small(bad, fails):
    assert "must be" in fails("audit", "--estimator", "DPFC", *bad)


def test_audit_of_a_model_takes_its_parameters(run, model):
    pytest.importorskip("jax_privacy")
    status, out, _ = run(
        *("audit", "--model", model, "--n-samples", 60, "--noise-multiplier", 3)
    )
    assert status == 0
    assert "DPLeastSquares on synthetic rows: 60 x 5, 4 classes" in out
    assert "claimed" in out


def test_audit_of_a_model_refuses_what_it_has_not(fails, model, tmp_path):
    err = fails("audit", "--model", model, "--set", "no_such=1")
    assert "DPLeastSquares has no parameter 'no_such'" in err
    assert "is not a privfeat model" in fails("audit", "--model", tmp_path)
