"""How much one record can change each statistic, with proofs.

Neighbouring data sets. A data set is a list of slots. An empty slot contributes zero to
every sum. Under ``add_remove`` neighbours differ in one slot that is empty in one of
them; under ``replace_one`` in one slot that is filled in both. (In a table without the
record others move up: no slot is unlike another, see ``sums.statistics``.) All
statistics are sums over slots, so a statistic changes by the contribution ``f(r)`` of
one record, or by the difference ``f(r) - f(r')`` of two.

Each function of an ``adjacency`` returns the largest L2 (Frobenius) norm of that
change, times ``1 + ROUNDING``. Sums are exact (see ``sums.statistics``), but a finished
integer sum is rounded once to float64, by a relative ``2**-53``. If a record adds at
most ``B``, the sum of at most ``2**32`` records (`MAX_ROWS` in ``sums.records``) has
norm at most ``2**32 B``. Rounding moves the sums of two neighbours by at most ``2**-20
B`` together, which is the margin. The few roundings of the bound itself take less than
``2**-48``. ``SHRINK`` in ``clipping`` leaves that: of its ``2**-36`` the rounding of
the widest rows takes four fifths. Counts and boxes are not shrunk: they have the whole
margin for it, as sums of at most ``2**52`` steps are not rounded.

Notation: ``x`` is the bounded row of a record, ``norm(x) <= C = clip_norm``; ``p`` its
predicted probabilities; ``y_j`` is 1 for each label ``j`` that it carries, else 0.
"""

import math

from privfeat._checks import check_choice, check_int, check_positive
from privfeat._types import ADJACENCIES, Adjacency, Loss
from privfeat.exceptions import UnsupportedEventError

ROUNDING = 2.0**-20
# A record has at most so many outputs: the rounding margin covers no more.
MAX_OUTPUTS = 199_999


def gram(clip_norm: float, adjacency: Adjacency) -> float:
    """Sensitivity of ``G = sum x x^T`` in Frobenius norm: ``C^2``, ``sqrt(2) C^2``.

    Proof. ``norm(x x^T)_F = norm(x)^2 <= C^2``. For two records,
    ``norm(x x^T - z z^T)_F^2 = norm(x)^4 + norm(z)^4 - 2 (x . z)^2 <= 2 C^4``, with
    equality for orthogonal rows of norm ``C``. The add/remove bound is line 2 of the
    proof of Theorem 2.2 in Mehta et al. 2023.
    """
    clip_norm = check_positive("clip_norm", clip_norm)
    return _bound(adjacency, clip_norm**2, acute=True)


def class_grams(clip_norm: float, adjacency: Adjacency, max_labels: int = 1) -> float:
    """Sensitivity of the stacked ``A_j``: ``sqrt(k) C^2``, ``sqrt(2 k) C^2``.

    ``A_j = sum of x x^T`` over the records that carry label ``j``, at most
    ``k = max_labels`` labels each.

    Proof. A record adds ``x x^T`` to at most ``k`` blocks, so the squared change is at
    most ``k C^4`` (Mehta et al. 2023, proof of Theorem 2.2). For two records with label
    sets ``S`` and ``T``, a block in one set changes by at most ``C^4`` (squared) and a
    block in both by at most ``2 C^4`` (see `gram`); ``abs(S) + abs(T) <= 2 k``.
    """
    clip_norm = check_positive("clip_norm", clip_norm)
    max_labels = check_int("max_labels", max_labels, low=1)
    return _bound(adjacency, math.sqrt(max_labels) * clip_norm**2, acute=True)


def class_sums(clip_norm: float, adjacency: Adjacency, max_labels: int = 1) -> float:
    """Sensitivity of the stacked ``b_j = sum of x``: ``sqrt(k) C``, ``2 sqrt(k) C``.

    Proof. As `class_grams` with ``norm(x) <= C``. For two records, a block in both
    label sets changes by ``norm(x - z) <= 2 C``; the worst case is ``S = T`` with
    ``z = -x``: ``sqrt(k) 2 C``. Otherwise blocks in one set alone add ``C^2`` each, and
    ``4 abs(S & T) + abs(S ^ T) <= 4 k`` since ``abs(S) + abs(T) <= 2 k``.
    """
    clip_norm = check_positive("clip_norm", clip_norm)
    max_labels = check_int("max_labels", max_labels, low=1)
    return _bound(adjacency, math.sqrt(max_labels) * clip_norm)


def clipped_gradient(clip_norm: float, adjacency: Adjacency) -> float:
    """Sensitivity of a sum of gradients clipped to norm ``C_g``: ``C_g``, ``2 C_g``.

    Proof. The triangle inequality; equality for opposite gradients of norm ``C_g``.
    Abadi et al. 2016, Algorithm 1; Mehta et al. 2023, Theorem 2.3.
    """
    return _bound(adjacency, check_positive("clip_norm", clip_norm))


def loss_gradient(
    row_norm: float,
    loss: Loss,
    n_outputs: int,
    adjacency: Adjacency,
    clip_norm: float | None = None,
) -> float:
    """Sensitivity of the gradient sum ``sum (p - y) x^T``; twice that for two records.

    - ``"sigmoid"``: ``sqrt(m) C`` for ``m = n_outputs`` and ``C = row_norm``;
    - ``"softmax"``: ``sqrt(2) C``, and ``"squared"``: ``2 C``, whatever ``m`` is;
    - ``clip_norm``, to which gradients are clipped, if it is less.

    Proof. ``norm((p - y) x^T)_F = norm(p - y) norm(x)``, and `clipping.clip_residuals`
    enforces both bounds, so the smaller holds.
    Sigmoid: every entry of ``p - y`` lies in [-1, 1], however many labels a record
    carries (Mehta et al. 2023, Theorem 2.1). Softmax, for records of one label, with
    true class ``c``: ``norm(p - y)^2 = sum_j p_j^2 - 2 p_c + 1 <= 1 - 2 p_c + 1 <= 2``,
    as ``sum p_j^2 <= 1``; approached when a wrong class gets probability one. Squared:
    the clip. Two records approach twice the bound by opposite gradients.
    """
    bound = residual_norm(loss, n_outputs) * check_positive("row_norm", row_norm)
    if clip_norm is not None:
        bound = min(bound, check_positive("clip_norm", clip_norm))
    return _bound(adjacency, bound)


def curvature_grams(
    clip_norm: float, loss: Loss, n_outputs: int, adjacency: Adjacency
) -> float:
    """Sensitivity of the stacked Hessian blocks ``H_j = sum p_j (1 - p_j) x x^T``.

    - ``"sigmoid"``: ``sqrt(m) C^2 / 4`` for ``m = n_outputs``, times ``sqrt(2)`` under
      replace-one.
    - ``"softmax"``: ``sqrt(4/27) C^2``, whatever ``m`` is, but ``sqrt(1/8) C^2`` for
      two outputs; each times ``sqrt(2)`` under replace-one.

    Proof. Let ``w_j = p_j (1 - p_j)``. The stack changes by ``norm(w) norm(x)^2``.
    Sigmoid: ``w_j <= 1/4`` (Mehta et al. 2023, Theorem 2.1). Softmax: ``sum_j w_j^2 =
    sum_j p_j [p_j (1 - p_j)^2] <= max_p p (1 - p)^2 = 4/27``, at ``p = 1/3``; three
    classes of probability 1/3 attain it. Two outputs: ``w_1 = w_2 = p (1 - p) <= 1/4``,
    so ``norm(w)^2 <= 2/16``. Two records with weights ``w`` and ``v``:
    ``sum_j norm(w_j x x^T - v_j z z^T)_F^2 <= norm(w)^2 C^4 + norm(v)^2 C^4``, because
    the cross terms ``-2 w_j v_j (x . z)^2`` are not positive.
    """
    clip_norm = check_positive("clip_norm", clip_norm)
    bound = curvature_norm(loss, n_outputs) * clip_norm**2
    return _bound(adjacency, bound, acute=True)


def per_user(l2_sensitivity: float, max_group_size: int) -> float:
    """Sensitivity where neighbours differ in all records of one user: ``k`` times.

    A user has any number of records, of which at most ``k = max_group_size`` count.
    Under ``add_remove`` all records of one user are absent from one of the neighbours;
    under ``replace_one`` they are replaced by any records of any number.

    Proof. Which of a user's records count depends on that user's records and on a key
    drawn apart from the data. So for every key the same records of all other users
    count. The sum changes by ``sum_i f(r_i) - f(r'_i)`` over ``i <= k``, with ``f = 0``
    where there is no record: all ``r'_i`` under ``add_remove``. Each term is at most
    ``l2_sensitivity``, the bound for one record (also where one of a pair is missing:
    replace-one bounds are not below add/remove bounds). Equality for ``k`` times the
    same worst record or pair. What holds for every key holds for a random one.

    Where sums of users are clipped (``users.user_factors``) a user counts as one record
    and ``k`` is 1.
    """
    l2_sensitivity = check_positive("l2_sensitivity", l2_sensitivity)
    max_group_size = check_int("max_group_size", max_group_size, low=1)
    return check_positive("sensitivity", l2_sensitivity * max_group_size)


def residual_norm(loss: Loss, n_outputs: int) -> float:
    """Return the largest ``norm(p - y)`` of a record (for softmax, of one label).

    The residual of the squared loss has no such bound: `clip_residuals` clips it to 2.
    """
    n_outputs = check_int("n_outputs", n_outputs, low=1, high=MAX_OUTPUTS)
    if loss == "sigmoid":
        return math.sqrt(n_outputs)
    return math.sqrt(2.0) if loss == "softmax" else 2.0


def largest_residual(loss: Loss) -> float:
    """Return the largest absolute entry of ``p - y`` of one record."""
    return residual_norm(loss, 1) if loss == "squared" else 1.0


def curvature_norm(loss: Loss, n_outputs: int) -> float:
    """Return the largest norm of the weights ``p_j (1 - p_j)`` of one record."""
    n_outputs = check_int("n_outputs", n_outputs, low=1, high=MAX_OUTPUTS)
    if loss == "sigmoid":
        return math.sqrt(n_outputs) / 4.0
    if loss == "softmax":
        return math.sqrt(4.0 / 27.0 if n_outputs > 2 else 1.0 / 8.0)
    raise UnsupportedEventError(
        f"loss must be 'sigmoid' or 'softmax' for Hessian blocks, got {loss!r}."
    )


def _bound(adjacency: Adjacency, single: float, *, acute: bool = False) -> float:
    """Return the bound for one record, or for two under replace-one.

    Two contributions are at most ``2 single`` apart, and ``sqrt(2) single`` where their
    inner product is not negative (``acute``), as for outer products.
    """
    check_choice("adjacency", adjacency, ADJACENCIES)
    check_positive("sensitivity", single)  # overflow and underflow fail
    pair = math.sqrt(2.0) if acute else 2.0
    factor = 1.0 if adjacency == "add_remove" else pair
    return single * factor * (1.0 + ROUNDING)
