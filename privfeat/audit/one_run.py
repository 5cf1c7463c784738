"""A lower bound on epsilon from a single fit with planted records."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfeat._checks import check_between, check_int, check_positive, require
from privfeat._messages import array_of
from privfeat.audit.copies import fit_copy
from privfeat.audit.random_numbers import Generator, make_rng
from privfeat.audit.scores import gradient_products, predicts_numbers, target_levels


@dataclass(frozen=True)
class OneRunResult:
    """What one fit with canaries shows about its epsilon.

    Attributes
    ----------
    epsilon_lower : float
        With ``confidence``, epsilon at ``delta`` is at least this.
    epsilon_claimed, delta, confidence : float
    n_canaries, n_guesses, n_correct : int
        Canaries planted; guessed to be in; of these, in.
    gaussian : bool
        Whether the bound uses that the claim is Gaussian DP.
    """

    epsilon_lower: float
    epsilon_claimed: float
    delta: float
    confidence: float
    n_canaries: int
    n_guesses: int
    n_correct: int
    gaussian: bool

    @property
    def ok(self) -> bool:
        """Whether the run is compatible with the claim."""
        return self.epsilon_lower <= self.epsilon_claimed

    def __str__(self) -> str:
        """Return one line."""
        return (
            f"epsilon >= {self.epsilon_lower:.3g} with confidence {self.confidence:.8g}"
            f", claimed {self.epsilon_claimed:.3g}, at delta {self.delta:.3g} "
            f"({self.n_correct} of {self.n_guesses} guesses right, {self.n_canaries} "
            "canaries)"
        )


def audit_one_run(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    n_canaries: int = 1000,
    guess_fraction: float = 0.1,
    confidence: float = 0.95,
    canary_norm: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    gaussian: bool | None = None,
    seed: int | None = None,
) -> OneRunResult:
    """Fit once with canaries and bound epsilon from below.

    Parameters
    ----------
    estimator : object
        Unfitted, and left so: a clone without its ledger is fitted. Needs ``fit``,
        ``decision_function`` and, once fitted, ``classes_``.
    X, y : array-like
        Records beside the canaries, which need no privacy; images as the numbers that a
        network sees, not as bytes.
    groups : array-like of shape (n_samples,), optional
        The user of each row, for an estimator with ``max_group_size``; a canary is then
        a user with so many equal rows.
    n_canaries : int
        At least 10. The bound sharpens with their number; ``n_features`` is enough.
    guess_fraction : float
        In (0, 1): the canaries with the highest scores, so many of them, are guessed to
        have taken part.
    confidence : float
        In (0.5, 1).
    canary_norm : float, optional
        Norm of the canaries, in feature units. Default: the largest norm in ``X``.
    epsilon, delta : float, optional
        The claim. Default: that of ``privacy_``.
    gaussian : bool, optional
        Whether the claim is Gaussian DP (a sharper bound). Default: whether
        ``privacy_`` has a ``mu``.
    seed : int, optional
        Of the canaries and their coins.

    Raises
    ------
    TypeError, ValueError
        If a number is out of range, or there is no claim.
    ImportError
        If jax-privacy is missing.

    Notes
    -----
    **Guarantee.** If a fit keeps its claim, ``epsilon_lower`` exceeds it with
    probability ``1 - confidence`` at most, over coins and noise. A bound far below the
    claim proves nothing: from one run of 1,000 canaries it is about half of the true
    epsilon, and at most the 5.6 (Gaussian, delta 1e-5) that 100 right guesses show. So
    it finds a missing clip, or noise that classes share, but not half the noise:
    `check_noise` does.

    Under replace-one a canary that does not take part is replaced by its negative.

    **Source.** Steinke, Nasr & Jagielski, Privacy Auditing with One (1) Training Run,
    2023, Algorithm 1 with ``k_- = 0``.
    """
    require("a one-run audit", "jax_privacy", extra="audit")
    check_int("n_canaries", n_canaries, low=10)
    check_between("guess_fraction", guess_fraction, 0.0, 1.0)
    check_between("confidence", confidence, 0.5, 1.0)
    records, labels = array_of(X, np.float64), array_of(y)
    rows = records.reshape(len(records), -1)
    if canary_norm is None:
        canary_norm = float(np.linalg.norm(rows, axis=1).max())
    norm = check_positive("canary_norm", canary_norm)
    labelled, avoid = _directions(estimator, rows, labels)
    canaries = make_canaries(
        n_canaries,
        rows.shape[1],
        labelled,
        norm=norm,
        avoid=avoid,
        rng=make_rng(seed),
    )
    data = _with_canaries(estimator, rows, labels, groups, canaries)
    shape = (-1, *records.shape[1:])
    model = fit_copy(estimator, data[0].reshape(shape), *data[1:])
    statement = getattr(model, "privacy_", None)
    if statement is not None:
        epsilon = statement.epsilon if epsilon is None else epsilon
        delta = statement.delta if delta is None else delta
        gaussian = statement.mu is not None if gaussian is None else gaussian
    if epsilon is None or delta is None:
        raise ValueError("epsilon and delta must be given for a fit without privacy_.")
    n_guesses = max(1, round(guess_fraction * n_canaries))
    scores = gradient_products(model, canaries.X.reshape(shape), canaries.y)
    claim: dict[str, Any] = {
        "n_guesses": n_guesses,
        "confidence": confidence,
        "delta": delta,
        "gaussian": bool(gaussian),
    }
    guessed = np.argsort(-scores, kind="stable")[:n_guesses]
    return OneRunResult(
        epsilon_lower=epsilon_lower_bound(scores, canaries.included, **claim),
        epsilon_claimed=epsilon,
        n_canaries=n_canaries,
        n_correct=int(canaries.included[guessed].sum()),
        **claim,
    )


@dataclass(frozen=True)
class Canaries:
    """Planted records, each of which takes part in the fit if its fair coin says so."""

    X: NDArray[np.float64]  # rows of one norm, orthogonal within each block
    y: NDArray[Any]
    included: NDArray[np.bool_]


def make_canaries(
    n_canaries: int,
    n_features: int,
    classes: NDArray[Any],
    *,
    norm: float,
    avoid: NDArray[np.float64],
    rng: Generator,
) -> Canaries:
    """Return canaries with random directions, labels and coins.

    Each has this ``norm``, in feature units. ``avoid``, of shape (n_avoided,
    n_features), are directions that other records leave in the coefficients, such as
    class means: canaries are orthogonal to them if they are at most half of the
    features. The score of a canary does not depend on what orthogonal records left in
    the coefficients. Where there are more canaries than directions, it does.
    """
    if 2 * len(avoid) > n_features:
        avoid = avoid[:0]
    room = n_features - len(avoid)
    blocks = []
    for start in range(0, n_canaries, room):
        size = min(room, n_canaries - start)
        random = rng.normal(size=(n_features, size))
        columns, _ = np.linalg.qr(np.column_stack([avoid.T, random]))
        blocks.append(columns[:, len(avoid) :].T)
    return Canaries(
        norm * np.concatenate(blocks),
        rng.choice(classes, size=n_canaries),
        rng.random(n_canaries) < 0.5,
    )


def _directions(
    estimator: Any, rows: NDArray[np.float64], labels: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return the labels of canaries, and what other records leave in coefficients.

    Of a regressor: the ends of its targets, and the mean of rows times targets.
    """
    if predicts_numbers(estimator):
        ends = target_levels(estimator, 2)
        moved = (labels - ends.mean()) @ rows
        return ends, moved[None] / len(rows)
    given, seen = getattr(estimator, "classes", None), np.unique(labels)
    means = np.array([rows[labels == c].mean(axis=0) for c in seen])
    return seen if given is None else np.asarray(given), means


def _with_canaries(
    estimator: Any,
    rows: NDArray[np.float64],
    labels: NDArray[Any],
    groups: ArrayLike | None,
    canaries: Canaries,
) -> tuple[NDArray[Any], ...]:
    """Return what ``fit`` takes: the rows, and the canaries as their coins say."""
    planted, planted_labels = canaries.X, canaries.y
    if getattr(estimator, "adjacency", "add_remove") == "replace_one":
        planted = np.where(canaries.included[:, None], planted, -planted)
    else:
        planted = planted[canaries.included]
        planted_labels = planted_labels[canaries.included]
    size = getattr(estimator, "max_group_size", None)
    copies = 1 if size is None else int(size)
    data = (
        np.concatenate([rows, np.repeat(planted, copies, axis=0)]),
        np.concatenate([labels, np.repeat(planted_labels, copies)]),
    )
    if size is None:
        return data
    names = np.arange(len(rows)) if groups is None else array_of(groups)
    users = np.unique(names, return_inverse=True)[1]
    new = users.max(initial=-1) + 1 + np.arange(len(planted))
    return *data, np.concatenate([users, np.repeat(new, copies)])


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

    ``scores`` are of the model alone, not of ``included``, the fair coins; larger where
    it seems to have seen the canary. The ``n_guesses`` highest are guessed to be in: a
    number fixed beforehand. ``gaussian``: the claim is Gaussian DP, for which alone
    there is a tighter bound.

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
