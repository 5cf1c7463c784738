"""Residuals of NumPy, where they are as long as they may be."""

import numpy as np
import pytest

from privfeat.core.sums.arithmetic.residuals import residuals_of


@pytest.mark.parametrize("n_rows", [1, 9])
def test_saturated_residuals_are_shortened_to_the_bound_of_their_outputs(n_rows):
    """Of four outputs, not of as many as there are rows: 2, less the margin."""
    scores = np.full((n_rows, 4), 1e3, np.float32)
    labels = np.full((n_rows, 1), -1, np.int32)
    found = residuals_of(
        scores, labels, np.ones(n_rows), None, loss="sigmoid", clip_norm=1e6
    )
    norms = np.linalg.norm(found, axis=1) * 2.0**-20
    assert np.all(norms < 2.0)
    np.testing.assert_allclose(norms, 2.0, rtol=1e-5)
