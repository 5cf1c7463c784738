"""The only place that knows jax-privacy: its auditor's lower bound on epsilon."""

import numpy as np
from numpy.typing import NDArray


def epsilon_lower_bound(
    scores: NDArray[np.float64],
    included: NDArray[np.bool_],
    *,
    n_guesses: int,
    confidence: float,
    delta: float,
    gaussian: bool,
) -> float:
    """Return a lower bound on epsilon from one run with ``len(scores)`` canaries.

    Parameters
    ----------
    scores : array of shape (n_canaries,)
        Of the model alone, not of ``included``; larger where it seems to have seen the
        canary.
    included : array of shape (n_canaries,)
        The fair coin of each canary.
    n_guesses : int
        The canaries with the highest scores are guessed to be in. Fixed beforehand.
    confidence, delta : float
    gaussian : bool
        Whether the claim is Gaussian DP: a tighter bound, only for such claims.

    Notes
    -----
    **Guarantee.** If the fit is (epsilon, delta)-DP, the bound is above epsilon with
    probability ``1 - confidence`` at most: Steinke, Nasr & Jagielski 2023
    (arXiv:2305.08846), Theorem 5.2; with ``gaussian`` Mahloujifar, Melis & Chaudhuri
    2024 (arXiv:2410.22235). Both hold for a number of guesses that is fixed beforehand.
    So the threshold is passed explicitly: the auditor's default picks the best of many,
    and corrects only for those on the hull of the ROC curve, which the data chose.
    """
    from jax_privacy.auditing import CanaryScoreAuditor, Explicit

    if not (included.any() and not included.all()):
        return 0.0
    auditor = CanaryScoreAuditor(scores[included], scores[~included])
    rule = Explicit(float(np.sort(scores)[-n_guesses]))
    bound = auditor.epsilon_one_run_fdp if gaussian else auditor.epsilon_one_run
    return float(bound(1.0 - confidence, delta, threshold_strategy=rule))
