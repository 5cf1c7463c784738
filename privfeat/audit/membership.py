"""How well a threshold on the loss separates members from others."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import roc_auc_score, roc_curve

from privfeat._checks import check_real
from privfeat._messages import array_of
from privfeat.audit.scores import margins


@dataclass(frozen=True)
class MembershipResult:
    """Figures of the attack, and what (epsilon, delta)-DP allows any attack.

    Attributes
    ----------
    auc : float
        Area under the ROC curve; 0.5 is a coin.
    tpr : float
        Members found at a false-positive rate of ``fpr``, at most.
    fpr : float
    advantage : float
        Largest difference of true- and false-positive rate.
    auc_bound, tpr_bound, advantage_bound : float
        What the guarantee allows on average; 1 without one. A finite sample can lie
        above by chance.
    """

    auc: float
    tpr: float
    fpr: float
    advantage: float
    auc_bound: float
    tpr_bound: float
    advantage_bound: float

    def __str__(self) -> str:
        """Return a table, one line for each figure."""
        return "\n".join(
            f"{name:<16}{value:>8.4f}   (at most {bound:.4f} by epsilon, delta)"
            for name, value, bound in (
                ("AUC", self.auc, self.auc_bound),
                (f"TPR at FPR {self.fpr:g}", self.tpr, self.tpr_bound),
                ("advantage", self.advantage, self.advantage_bound),
            )
        )


def membership(
    model: Any,
    members: tuple[ArrayLike, ArrayLike],
    others: tuple[ArrayLike, ArrayLike],
    *,
    fpr: float = 0.01,
    epsilon: float | None = None,
    delta: float | None = None,
) -> MembershipResult:
    """Attack a fitted model with a threshold on the margin of the label.

    Parameters
    ----------
    model : object
        Fitted, with ``decision_function`` and ``classes_``, or a regressor: there the
        threshold is on the absolute error.
    members, others : (X, y)
        Records of the fit, and records of the same distribution that took no part.
    fpr : float
        In [0, 1].
    epsilon, delta : float, optional
        The claim. Default: that of ``model.privacy_``, if it has one.

    Notes
    -----
    The weakest of attacks (Yeom et al. 2018): a high figure is bad news, a low one is
    no proof. The figures are computed from the exact data: not private.

    **Bounds.** An (epsilon, delta)-DP test has ``TPR <= e^epsilon FPR + delta`` and
    ``1 - FPR <= e^epsilon (1 - TPR) + delta`` (Kairouz et al. 2015, Theorem 2.1); all
    three bounds follow from this region.
    """
    arrays = [(array_of(X), array_of(y)) for X, y in (members, others)]
    scores = [margins(model, X, y) for X, y in arrays]
    truth = np.repeat([1, 0], [len(values) for values in scores])
    joined = np.concatenate(scores)
    false, true, _ = roc_curve(truth, joined, drop_intermediate=False)
    stated = getattr(model, "privacy_", None)
    epsilon = getattr(stated, "epsilon", math.inf) if epsilon is None else epsilon
    delta = getattr(stated, "delta", 0.0) if delta is None else delta
    return MembershipResult(
        float(roc_auc_score(truth, joined)),
        float(true[false <= fpr].max()),
        fpr,
        float(np.max(true - false)),
        *bounds(epsilon, delta, fpr),
    )


def bounds(epsilon: float, delta: float, fpr: float) -> tuple[float, float, float]:
    """Return the largest AUC, TPR at ``fpr`` and advantage of a test.

    ``epsilon`` is >= 0, and ``inf`` for no claim; ``delta`` and ``fpr`` are in [0, 1].
    The highest ROC curve runs from ``(0, delta)`` to ``(f, 1 - f)`` and ``(1 - delta,
    1)``, where ``f = (1 - delta) / (1 + e^epsilon)``. Its area is that of two trapezia
    and a rectangle, its advantage ``1 - 2 f``.

    >>> bounds(0.0, 0.0, 0.25)
    (0.5, 0.25, 0.0)
    """
    epsilon = check_real("epsilon", epsilon, low=0.0)
    delta = check_real("delta", delta, low=0.0, high=1.0)
    fpr = check_real("fpr", fpr, low=0.0, high=1.0)
    corner = (1.0 - delta) * (0.0 if epsilon > 700 else 1.0 / (1.0 + math.exp(epsilon)))
    area = corner * (1.0 + delta - corner) / 2
    area += (1.0 - delta - corner) * (2.0 - corner) / 2 + delta
    steep = 1.0 if epsilon > 700 else min(1.0, math.exp(epsilon) * fpr + delta)
    flat = 1.0 - math.exp(-epsilon) * max(0.0, 1.0 - delta - fpr)
    return area, min(steep, flat), 1.0 - 2.0 * corner
