"""How far noise and sampling move a regression, simulated from its releases."""

from dataclasses import replace

import numpy as np
from jaxtyping import Float
from numpy.random import RandomState  # noqa: TID251 - not noise: no guarantee needs it

from privfeat.core.noise.release import Release
from privfeat.solvers.regression import NoisyRegression


def residual_variance(
    regression: NoisyRegression, coef: Float[np.ndarray, " k"]
) -> float:
    """Return the mean squared residual of ``coef``, one stddev of its noise added.

    In squared units of the target coordinate.
    """
    direction, moments = regression.residual_of(coef), regression.noisy_moments
    total = float(direction @ moments.value @ direction)
    total += moments.noise_stddev * float(direction @ direction)
    return max(total, 0.0) / regression.count


def simulated_errors(
    regression: NoisyRegression,
    coef: Float[np.ndarray, " k"],
    *,
    sums_stddev: float,
    n_steps: int,
    bound: float,
    n_resamples: int,
    random_state: RandomState,
) -> Float[np.ndarray, "r k"]:
    """Return errors of fits to records of which ``coef`` is about the relation.

    ``coef`` is what the fit returned, in units of `NoisyRegression.coef`;
    ``sums_stddev`` of the noise of the released residual sums; ``n_steps`` and
    ``bound`` as of `NoisyRegression.corrected`.

    A parametric bootstrap. The moments of the features are those of
    `NoisyRegression.gram`; targets are drawn with normal errors of `residual_variance`;
    a fit to them is simulated with noise of the known law, and what it returns beyond
    the true relation is its error.

    A fit cannot see the relation along eigenvectors whose eigenvalue ``g`` is far below
    the damping ``h``, and shrinks it. So the true relation is drawn as well: around
    ``coef``, with variance ``h / (g + h) E / (k max(g, h))``, where ``E`` is what
    ``coef`` explains. It is what is to be expected along such a vector if all explain
    as much, and vanishes for ``g`` far above ``h``.
    """
    noisy, kept, n = regression.noisy_moments, regression.kept, regression.n_features
    stddev, size = noisy.noise_stddev, len(noisy.value)
    gram, variance = regression.gram(), residual_variance(regression, coef)
    values, vectors = np.linalg.eigh(gram)
    values = np.maximum(values, 0.0)
    damping = regression.damping
    hidden = damping / (values + damping) / np.maximum(values, damping)
    hidden *= (coef @ gram @ coef) / len(coef)
    errors = np.empty((n_resamples, len(coef)))
    for error in errors:
        unseen, sampled = random_state.standard_normal((2, len(coef)))
        truth = coef + vectors @ (np.sqrt(hidden) * unseen)
        exact = np.zeros((size, size))
        exact[np.ix_(kept, kept)] = gram
        products = gram @ truth + vectors @ (np.sqrt(values * variance) * sampled)
        exact[n, kept] = exact[kept, n] = products
        exact[n, n] = truth @ gram @ truth + regression.count * variance
        noise = stddev * random_state.standard_normal((size, size))
        value = exact + (noise + noise.T) / 2.0  # the diagonal has the stddev
        refit = replace(regression, noisy_moments=replace(noisy, value=value))

        def residual_sums(
            direction: Float[np.ndarray, " c"], exact: Float[np.ndarray, "c c"] = exact
        ) -> Release:
            noise = sums_stddev * random_state.standard_normal(size)
            total = (exact @ direction + noise)[None]
            return Release("residual_sums", total, sums_stddev, symmetric=False)

        found = refit.corrected(
            residual_sums, n_steps=n_steps, bound=bound, noise_stddev=sums_stddev
        )
        error[:] = found - truth
    return errors
