"""DPAdamLinear with an optimizer that the caller made."""

import numpy as np
import optax
import pytest

from privfeat import DPAdamLinear

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


def test_an_optimizer_of_optax_has_its_own_rate(three_classes):
    """The same noise and the same steps, whoever made the optimizer."""
    X, y = three_classes
    options = {"noise_multiplier": 5.0, "n_iter": 2, "random_state": 0}
    own = DPAdamLinear(optimizer=optax.sgd(0.1), **options).fit(X, y)
    named = DPAdamLinear(optimizer="sgd", learning_rate=0.1, **options).fit(X, y)
    np.testing.assert_allclose(own.coef_, named.coef_)
