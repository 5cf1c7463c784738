import itertools

import pytest

from privfeat.analysis.batches import noise_by_batch_size
from privfeat.analysis.tan import TAN


@pytest.fixture(scope="module")
def figure_5():
    """Return settings of Figure 5: 60,000 examples, 10 epochs, one budget."""
    sizes = [64, 256, 1024, 4096]
    return noise_by_batch_size(60_000, sizes, epsilon=2.0, delta=1e-5, n_epochs=10)


@pytest.mark.slow
def test_noise_is_the_least_that_meets_the_budget(figure_5):
    for row in figure_5:
        q = row.batch_size / 60_000
        tan = TAN(q, row.noise_multiplier, row.n_iter)
        assert tan.epsilon(1e-5, accountant="rdp") <= 2.0
        less = TAN(q, 0.995 * row.noise_multiplier, row.n_iter)
        assert less.epsilon(1e-5, accountant="rdp") > 2.0
        assert tan.epsilon(1e-5) < 2.0  # loss distributions agree that it is enough


def test_large_batches_have_far_less_noise_per_example(figure_5):
    noises = [row.noise_per_example for row in figure_5]
    assert all(b < a / 2 for a, b in itertools.pairwise(noises))


def test_learning_rate_is_scaled_with_the_batch(figure_5):
    assert [row.learning_rate for row in figure_5] == pytest.approx(
        [0.005, 0.02, 0.08, 0.32]
    )


def test_batch_has_at_most_all_records():
    with pytest.raises(ValueError, match="batch_size must be in"):
        noise_by_batch_size(10, [11], epsilon=1.0, delta=1e-5, n_epochs=1)


def test_impossible_budget_is_refused():
    with pytest.raises(ValueError, match="epsilon must be reached"):
        noise_by_batch_size(10, [10], epsilon=1e-9, delta=1e-5, n_epochs=100)
