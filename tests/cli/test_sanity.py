import json

import pytest

from tests.cli.test_statuses import FIELDS, fields_of

FEW = ("--n-users", 100, "--n-fits", 10, "--quiet")


@pytest.mark.slow
def test_sanity_passes_with_noise_and_draws(run, tmp_path):
    pytest.importorskip("matplotlib")
    plots = tmp_path / "plots"
    command = ("sanity", "--estimator", "DPLeastSquares", *FEW, "--plots", plots)
    status, out, _ = run(*command, "--noise-multiplier", 100, "--smallest-noise")
    assert status == 0
    assert "random labels: pass" in out
    assert "pattern of one user: pass" in out
    assert "pattern of all users" in out
    assert "smallest noise multiplier that passes: " in out
    assert len(list(plots.glob("*.png"))) == 3


@pytest.mark.slow
def test_sanity_fails_without_noise(run):
    command = ("sanity", "--estimator", "DPLeastSquares", *FEW)
    status, out, err = run(*command, "--epsilon", "inf", "--set", "ridge=1e-3")
    assert status == 1
    assert "random labels: FAIL" in out
    assert "learned more than its stated cost" in err


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "passed"), [(100, True), (0, False)])
def test_sanity_speaks_json_whether_it_passes_or_not(run, noise, passed):
    command = ("sanity", "--estimator", "DPLeastSquares", *FEW, "--json")
    cost = ("--noise-multiplier", noise) if noise else ("--epsilon", "inf")
    status, out, _ = run(*command, *cost, "--set", "ridge=1e-3")
    found = json.loads(out)
    assert fields_of(found, FIELDS["sanity"]) == FIELDS["sanity"]
    assert (status, found["passed"]) == (0 if passed else 1, passed)
    assert [len(test["values"]) for test in found["tests"]] == [10, 10, 10]
    assert found["tests"][0]["passed"] == passed


@pytest.mark.slow
def test_sanity_asks_no_regressor_for_what_many_have(run):
    """Least squares shrinks the target of a quarter towards the mean of all others."""
    status, out, _ = run("sanity", "--estimator", "DPLeastSquaresRegressor", *FEW)
    assert status == 0
    assert "pattern of one user: pass" in out
    assert "pattern of all users" not in out


@pytest.mark.slow
def test_sanity_takes_the_rate_that_its_message_names(fails, run):
    few = ("sanity", "--estimator", "DPFC", "--n-users", 100, "--n-fits", 2, "--quiet")
    error = fails(*few, "--epsilon", 1)
    assert "rate must leave a test that can fail, got 0.0005 for 2 fits" in error
    assert "Pass a larger rate, more fits, or a smaller epsilon" in error
    assert run(*few, "--epsilon", 1, "--rate", 0.05)[0] == 0
