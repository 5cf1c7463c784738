import numpy as np
import pytest

from privfeat import DPAdamLinear
from privfeat.core.noise.release import Release
from privfeat.estimation.predictor import class_probabilities, label_probabilities
from privfeat.solvers.intercepts import InterceptSearch, class_sums, first_intercepts

SHARES = np.array([0.01, 0.24, 0.75])


def gradient(loss, shares, *, n=10_000, constant=0.1, largest=10.0):
    """The sum at coefficients of zero, of residuals clipped to ``largest``."""
    m = len(shares)
    p = {"softmax": 1.0 / m, "sigmoid": 0.5, "squared": 0.0}[loss]
    total = np.zeros(m)
    for label, share in enumerate(shares):
        residual = p - np.eye(m)[label]
        total += n * share * residual * min(1.0, largest / np.linalg.norm(residual))
    return np.column_stack([np.zeros(m), constant * total])


def found(loss, values, *, stddev=0.0, n=10_000, constant=0.1, largest=10.0):
    release = Release("gradient", values, stddev, False)
    options = {"n_records": n, "constant": constant, "largest": largest}
    return constant * first_intercepts(release, loss=loss, **options)


@pytest.mark.parametrize("largest", [10.0, 0.4])
@pytest.mark.parametrize("loss", ["softmax", "sigmoid", "squared"])
def test_probabilities_become_the_shares(loss, largest):
    """Without noise, whatever the clip: all residuals are equally long."""
    scores = found(loss, gradient(loss, SHARES, largest=largest), largest=largest)
    if loss == "softmax":
        shares = class_probabilities("softmax", scores[None, :])[0]
    else:
        shares = label_probabilities(loss, scores)
    np.testing.assert_allclose(shares, SHARES, rtol=1e-6)


def test_classes_that_noise_hides_keep_equal_intercepts():
    """Nearly all draws of noise alone change nothing."""
    rng = np.random.default_rng(0)
    stddev, scores = 50.0, []
    for _ in range(200):
        noise = np.column_stack([np.zeros(10), stddev * rng.normal(size=10)])
        scores.append(found("softmax", noise, stddev=stddev, n=1_000))
    unchanged = np.mean(~np.any(scores, axis=1))
    assert unchanged > 0.95


def test_a_class_without_records_gets_what_noise_may_hide():
    values = gradient("softmax", np.array([0.0, 1.0]))
    scores = found("softmax", values, stddev=1.0)
    share = class_probabilities("softmax", scores[None, :])[0, 0]
    assert share == pytest.approx(10.0 / 10_000, rel=0.01)


@pytest.mark.parametrize("n", [-50.0, 0.0, 3.0])
@pytest.mark.parametrize("loss", ["softmax", "sigmoid", "squared"])
def test_any_noisy_number_of_records_gives_finite_intercepts(loss, n):
    values = gradient(loss, SHARES, n=100)
    assert np.all(np.isfinite(found(loss, values, stddev=1.0, n=n)))
    assert np.all(np.isfinite(found(loss, 0.0 * values, stddev=1.0, n=n)))


def at_logits(logits, sums, largest):
    """The gradient of the softmax for classes whose rows have these sums."""
    p = class_probabilities("softmax", logits[None, :])[0]
    total = np.zeros_like(sums)
    for label, of_class in enumerate(sums):
        residual = p - np.eye(len(sums))[label]
        factor = min(1.0, largest / np.linalg.norm(residual))
        total += factor * np.outer(residual, of_class)
    return total


@pytest.mark.parametrize("largest", [10.0, 1.0, 0.9])
def test_two_gradients_tell_the_sums_of_the_classes(largest):
    """Without noise, whatever the clip."""
    sums = np.random.default_rng(0).normal(size=(3, 5))
    logits = [np.zeros(3), np.array([0.0, 0.0, 3.0])]
    values = [at_logits(each, sums, largest) for each in logits]
    found, noise = class_sums(
        [Release("gradient", each, 0.0, False) for each in values],
        logits,
        largest=largest,
    )
    np.testing.assert_allclose(found, sums, atol=1e-10)
    assert noise == 0.0


def test_the_noise_of_the_total_is_known():
    rng = np.random.default_rng(0)
    logits = [np.zeros(3), np.array([0.0, 0.0, 3.0])]
    draws = []
    for _ in range(300):
        noises = [Release("gradient", rng.normal(size=(3, 9)), 1.0, False)] * 2
        noises[1] = Release("gradient", rng.normal(size=(3, 9)), 1.0, False)
        sums, noise = class_sums(noises, logits, largest=1.0)
        draws.append(sums.sum(axis=0))
    assert np.std(draws) == pytest.approx(noise, rel=0.05)


def searched(sums, *, stddev=0.0, **options):
    """A search that is handed gradients until it is done; and what it found."""
    options = {"loss": "softmax", "n_records": None, "n_iter": 12} | options
    options = {"largest": 1.0, "alike": False} | options
    search = InterceptSearch(**options, constant=0.1)
    for _ in range(2):
        logits = search.at(np.zeros_like(sums))[:, -1] * 0.1
        values = at_logits(logits, sums, options["largest"])
        found = search.take(Release("gradient", values, stddev, False))
        if search.done:
            break
    return search, found


def of_shares(shares, n=10_000):
    rows = np.random.default_rng(0).normal(size=(len(shares), 4))
    return (
        n * np.asarray(shares)[:, None] * np.column_stack([rows, 0.1 + 0 * rows[:, 0]])
    )


@pytest.mark.parametrize("largest", [1.0, 0.6])
def test_a_search_without_a_number_finds_what_one_with_it_finds(largest):
    sums, options = of_shares(SHARES), {"largest": largest, "alike": True}
    known, unknown = (
        searched(sums, n_records=n, **options)[1] for n in (10_000.0, None)
    )
    np.testing.assert_allclose(unknown[0], known[0], rtol=1e-6)
    shares = class_probabilities("softmax", 0.1 * unknown[0][None, :])[0]
    slope = np.outer(shares, sums.sum(axis=0)) - sums
    np.testing.assert_allclose(unknown[1][:, :-1], slope[:, :-1], atol=1e-6)
    np.testing.assert_array_equal(unknown[1][:, -1], 0.0)


@pytest.mark.parametrize(
    "options",
    [
        {"n_iter": 9},
        {"largest": 0.6},  # of rows that are not alike
        {"stddev": 1e4},
        {"loss": "sigmoid"},
        {"loss": "squared"},
    ],
)
def test_no_second_gradient_is_spent_for_nothing(options):
    search, found = searched(of_shares(SHARES), **options)
    assert search.done
    assert found is None
    assert search.at("coef") == "coef"


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
def test_a_gradient_that_counts_is_no_iterate_of_an_average():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 4)), (np.arange(600) % 20 == 0) + 0
    options = {"optimizer": "sgd", "learning_rate": 1e-12, "center": False}
    options |= {"loss": "softmax", "epsilon": np.inf, "n_iter": 12, "random_state": 0}
    last, mean = (
        DPAdamLinear(classes=[0, 1], iterate=iterate, **options).fit(X, y).intercept_
        for iterate in ("last", "average")
    )
    assert np.max(np.abs(last)) > 1.0
    np.testing.assert_allclose(mean, last, rtol=1e-6)
