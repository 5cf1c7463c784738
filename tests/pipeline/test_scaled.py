"""Two private steps: what the second sees follows from what the first released."""

import numpy as np
import pytest
from sklearn.preprocessing import PolynomialFeatures

from privfeat import DPLeastSquares, PrivacyLedger, PrivacyWarning, PrivatePipeline
from privfeat.audit import recording
from privfeat.exceptions import PrivacyError
from privfeat.preprocessing import DPStandardScaler
from tests.linear.replaying import check_sensitivity
from tests.pipeline.conftest import BOUNDS, scaled


def test_a_private_scaler_lets_small_columns_count(columns):
    """Noise at epsilon 8 is ten standard deviations from what would matter."""
    assert scaled(epsilon=8.0).fit(*columns).score(*columns) > 0.9


def test_releases_name_their_step_and_cost_the_total(columns):
    said = scaled().fit(*columns).privacy_
    names = [release.name for release in said.releases]
    assert names == ["scale.moments", "clf.feature_mean", "clf.gram", "clf.class_sums"]
    spent = {r.name: r.count / r.noise_multiplier**2 for r in said.releases}
    assert sum(spent.values()) == pytest.approx(said.mu**2, rel=1e-6)
    assert sum(spent.values()) <= said.mu**2
    assert spent["scale.moments"] == pytest.approx(said.mu**2 / 9, rel=1e-6)


def test_shares_divide_the_budget(columns):
    said = scaled(shares={"scale": 1, "clf": 1}).fit(*columns).privacy_
    assert said.releases[0].noise_multiplier == pytest.approx(
        (2.0 / said.mu**2) ** 0.5, rel=1e-6
    )


@pytest.mark.parametrize(
    "options",
    [{}, {"adjacency": "replace_one"}, {"arithmetic": "exact"}, {"max_group_size": 2}],
)
def test_planned_is_what_two_steps_release(options, columns):
    model = scaled(**options)
    groups = np.arange(2000) // 2 if "max_group_size" in options else None
    fitted = scaled(**options).fit(*columns, groups=groups)
    assert model.planned(3).records == fitted.privacy_.releases
    assert fitted.privacy_.unit == ("record" if groups is None else "user")


def test_a_public_step_between_is_fitted_to_zeros(columns):
    steps = scaled().steps
    steps.insert(1, ("more", PolynomialFeatures(2, include_bias=False)))
    model = PrivatePipeline(steps, epsilon=4.0).fit(*columns)
    assert model.named_steps["clf"].n_features_in_ == 9
    assert len(model.get_feature_names_out()) == 9


def test_a_transformer_may_be_last(columns):
    model = PrivatePipeline([("scale", DPStandardScaler(bounds=BOUNDS))], epsilon=4.0)
    made = model.fit(columns[0]).transform(columns[0])
    np.testing.assert_allclose(made.std(axis=0), 1.0, atol=0.3)
    assert not hasattr(model, "predict")


def test_a_step_that_breaks_in_the_middle_has_spent_all(tmp_path, columns, plant):
    ledger = PrivacyLedger(tmp_path / "l", dataset="d", epsilon=1.0, delta=1e-5)

    def fails(*_, **__):
        raise FloatingPointError("planted")

    plant("release of the mean", fails)
    model = scaled(ledger=ledger)
    with pytest.raises(FloatingPointError) as caught:
        model.fit(*columns)
    assert "its budget is spent" in "".join(caught.value.__notes__)
    assert model.privacy_.epsilon == 1.0
    assert not hasattr(model, "steps_")
    (charge,) = ledger.history
    assert (charge.status, charge.statement.epsilon) == ("asked", 1.0)


def test_a_step_that_draws_another_plan_is_refused(columns, plant):
    from privfeat.core.accounting.calibration import plan_releases

    def generous(queries, **options):
        if "accounting" in options:  # of the linear fit, which is behind a scaler
            options["rho"] = options["rho"] * next(factors)
        return plan_releases(queries, **options)

    factors = iter([1.0, 4.0])  # as it is told, as it is drawn
    plant("plan of a fit", generous)
    with pytest.raises(PrivacyError, match="exactly what it has told"):
        scaled().fit(*columns)


def make(adjacency, groups=None):
    return scaled(
        DPLeastSquares(classes=[0, 1], row_scaling="clip"),
        adjacency=adjacency,
        random_state=3,
        epsilon=2.0,
        max_group_size=None if groups is None else 2,
    )


def neighbours(X, y, adjacency):
    for row in ([1e6, -1e6, 1e6], [3.0, 30.0, 300.0], [0.0, 0.0, 0.0]):
        for label in (0, 1):
            if adjacency == "add_remove":
                yield np.vstack([X, row]), np.append(y, label), None
            else:
                yield np.vstack([row, X[1:]]), np.append(label, y[1:]), None
    if adjacency == "add_remove":
        yield X[1:], y[1:], None


def users_of(X, y):
    """All records of one user gone, and a user more."""
    ids = np.arange(len(X)) // 2
    yield X[2:], y[2:], ids[2:]
    more = np.array([[3.0, -30.0, 300.0]] * 2)
    yield np.vstack([X, more]), np.append(y, [1, 1]), np.append(ids, [999, 999])


@pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
@pytest.mark.parametrize("kind", ["add_remove", "replace_one", "users"])
def test_no_sum_of_any_step_moves_beyond_its_bound_under_equal_releases(kind, columns):
    X, y = (part[:60] for part in columns)
    adjacency = "add_remove" if kind == "users" else kind
    groups = np.arange(60) // 2 if kind == "users" else None
    others = users_of(X, y) if kind == "users" else neighbours(X, y, adjacency)
    with recording() as spy:
        spy.start()
        statement = make(adjacency, groups).fit(X, y, groups).privacy_
        calls = spy.calls
        for other in others:
            spy.start(answers=calls)
            make(adjacency, groups).fit(*other)
            for prefix, some, same in of_steps(statement, calls, spy.calls):
                assert prefix
                check_sensitivity(some, *same)


def of_steps(statement, calls, other_calls):
    """Yield each step's statement, and its calls."""
    from dataclasses import replace

    for step in ("scale", "clf"):
        mine = [r for r in statement.releases if r.name.startswith(f"{step}.")]
        part = replace(statement, releases=tuple(mine))
        parts = [
            [call for call in found if call.name.startswith(f"{step}.")]
            for found in (calls, other_calls)
        ]
        yield step, part, parts


def test_seeded_steps_have_different_noise(columns):
    with pytest.warns(PrivacyWarning):
        model = scaled(random_state=3).fit(*columns)
    seeds = {step.random_state for _, step in model.steps_}
    assert len(seeds) == 2
