"""Where replacing a record moves sums by less than twice what one record adds.

Two records share what every record has, such as a constant coordinate, and no pair of
them moves all statistics of a fit the most at once. In the notation of ``sensitivity``:
``x`` and ``z`` are the rows of two records, ``norm(x) <= C``.
"""

import math

from privfeat._checks import check_choice, check_int, check_positive, check_real
from privfeat._types import ADJACENCIES, Adjacency
from privfeat.core.bounds.sensitivity import ROUNDING


def row_sum(row_norm: float, constant: float, adjacency: Adjacency) -> float:
    """Sensitivity of ``sum (x, c)``: ``hypot(C, c)``, and ``2 C`` if that is more.

    Every row ends in the same constant ``c`` or is zero; the rest of it has ``norm(x)
    <= C = row_norm``.

    Proof. One record adds ``(x, c)`` or nothing. Two that both have the constant differ
    by ``(x - z, 0)``, at most ``2 C``. Where one is missing or zero as a whole they
    differ by at most ``hypot(C, c)``, whatever the adjacency is. The rows of a user add
    up to a vector in the cone of all such rows. If these sums are clipped to norm
    ``hypot(C, c)``, two differ most if both are on the edge of the cone, by ``2 C``, or
    if one is zero, by ``hypot(C, c)``: the bound holds for them, too.
    """
    check_choice("adjacency", adjacency, ADJACENCIES)
    row_norm = check_positive("row_norm", row_norm)
    single = math.hypot(row_norm, check_positive("constant", constant))
    pair = 2.0 * row_norm if adjacency == "replace_one" else 0.0
    return max(single, pair) * (1.0 + ROUNDING)


def class_counts(adjacency: Adjacency) -> float:
    """Sensitivity of the numbers of records of each class: 1, and ``sqrt(2)``.

    Proof. A record adds 1 to one count, or to none. Replacing it takes 1 from one count
    and adds 1 to another, at most.
    """
    check_choice("adjacency", adjacency, ADJACENCIES)
    pair = math.sqrt(2.0) if adjacency == "replace_one" else 1.0
    return pair * (1.0 + ROUNDING)


def level_counts(n_levels: int, adjacency: Adjacency) -> float:
    """Sensitivity of the numbers of records in cells of ``L`` levels, as one vector.

    It is ``sqrt(L)``, and ``sqrt(2 L)`` under replace-one. A record is in at most one
    cell of each level.

    Proof. In each level it is `class_counts`: the square of the change is at most 1,
    and 2 under replace-one. Squares of ``L`` levels add up. Equality for a record that
    is in a cell of every level, and for two that share none.
    """
    n_levels = check_int("n_levels", n_levels, low=1)
    return class_counts(adjacency) * math.sqrt(n_levels)


def box_sums(box: tuple[tuple[float, float], ...], adjacency: Adjacency) -> float:
    """Sensitivity of ``sum v`` for vectors with ``a_j <= v_j <= b_j``.

    ``box`` holds ``(a_j, b_j)`` with ``-1 <= a_j <= 0 <= b_j <= 1``.

    Proof. One record adds at most ``max(-a_j, b_j)`` to coordinate ``j``, two in place
    of one another differ by at most ``b_j - a_j``, which is no less; squares add up.
    """
    check_choice("adjacency", adjacency, ADJACENCIES)
    squares = []
    for low, high in box:
        check_real("low", low, low=-1.0, high=0.0)
        check_real("high", high, low=0.0, high=1.0)
        single = max(-low, high)
        squares.append(((high - low) if adjacency == "replace_one" else single) ** 2)
    bound = check_positive("sensitivity", math.sqrt(math.fsum(squares)))
    return bound * (1.0 + ROUNDING)


def column_moments(
    n_columns: int,
    count_scale: float,
    mean_scale: float,
    shift: float,
    adjacency: Adjacency,
) -> float:
    """Sensitivity of the stack of ``c n``, ``a sum u_j`` and ``sum (t_j - s)``.

    A record adds ``c``, and for each of ``d`` columns ``a u`` and ``t - s``, where ``-1
    <= u <= 1`` and ``t`` is the square of ``u``, rounded up: ``u^2 <= t <= 1`` and ``t
    <= u^2 + e`` for ``e = 2^-20``.

    Parameters
    ----------
    n_columns : int
        ``d >= 1``.
    count_scale, mean_scale : float
        ``c > 0`` and ``a`` in (0, 1].
    shift : float
        ``s`` in [0, 1].
    adjacency : {"add_remove", "replace_one"}

    Proof. One record: a column adds ``a^2 u^2 + (t - s)^2 <= a^2 t + (t - s)^2``,
    convex in ``t`` over [0, 1], so at most the larger of ``s^2`` and ``a^2 + (1 -
    s)^2``, reached by ``u = 0`` or ``u = 1``. The two are equal for ``s = (1 + a^2) /
    2``, which is the best shift. Columns add up, and ``c^2`` once.

    Two records: both add ``c``. Let ``p = abs(u - v)`` and ``q = abs(u + v)``, so that
    ``p + q <= 2`` and ``p q = abs(u^2 - v^2) <= 1``. A column moves by at most ``a^2
    p^2 + (p q + e)^2 <= g(p) + 2 e + e^2`` with ``g(p) = p^2 (a^2 + (2 - p)^2)``. For
    ``a^2 >= 1/2`` it rises up to ``g(2) = 4 a^2``; else its other maximum is at ``p =
    (3 - r) / 2`` with ``r = sqrt(1 - 2 a^2)``, and is ``(3 - r)^3 (1 + r) / 16``.
    Reached by ``u = 1`` and ``v = 1 - p``. A pair with one record missing moves as one.
    """
    check_choice("adjacency", adjacency, ADJACENCIES)
    n_columns = check_int("n_columns", n_columns, low=1)
    check_positive("count_scale", count_scale)
    check_real("mean_scale", mean_scale, low=0.0, high=1.0, include_low=False)
    check_real("shift", shift, low=0.0, high=1.0)
    square = mean_scale**2
    single = count_scale**2 + n_columns * max(shift**2, square + (1.0 - shift) ** 2)
    moved = single
    if adjacency == "replace_one":
        root = math.sqrt(max(0.0, 1.0 - 2.0 * square))
        inner = (3.0 - root) ** 3 * (1.0 + root) / 16.0 if square < 0.5 else 0.0
        pair = n_columns * (max(4.0 * square, inner) + 2.0**-18)
        moved = max(single, pair)
    # sums are rounded twice, once as sums and once by their scale
    return check_positive("sensitivity", math.sqrt(moved) * (1.0 + 2.0 * ROUNDING))


def gram_and_products(
    row_norm: float,
    factor_norm: float,
    gram_scale: float,
    class_gram_scale: float,
    adjacency: Adjacency,
) -> float:
    """Sensitivity of the stack of ``s sum x x^T``, ``t sum r_j x x^T``, ``sum r x^T``.

    ``r`` is a vector of a record with ``norm(r) <= R``. There is one class Gram matrix
    ``sum r_j x x^T`` for each entry of ``r``. If their scale ``t`` is above zero, ``r``
    must be the indicator of the record's labels, of which it has at most ``k = R^2``.

    Parameters
    ----------
    row_norm, factor_norm : float
        ``C`` and ``R``, > 0.
    gram_scale, class_gram_scale : float
        ``s > 0`` and ``t >= 0``, which bring the parts to one unit.
    adjacency : {"add_remove", "replace_one"}

    Proof. One record adds ``norm^2 <= (s^2 + R^2 t^2) C^4 + R^2 C^2``, as ``sum_j r_j^2
    <= R^2`` and the indicator is its own square. For two records let ``u = x . z``, so
    ``abs(u) <= C^2``, and ``v = r . q`` for their vectors ``r`` and ``q``, so ``abs(v)
    <= R^2``. The squared changes of the parts are, in their order,

    - ``s^2 (norm(x)^4 + norm(z)^4 - 2 u^2) <= s^2 (2 C^4 - 2 u^2)``;
    - ``t^2 (norm(r)^2 norm(x)^4 + norm(q)^2 norm(z)^4 - 2 v u^2) <= t^2 (2 R^2 C^4 - 2
      v u^2)``, with ``v >= 0`` for indicators;
    - ``norm(r)^2 norm(x)^2 + norm(q)^2 norm(z)^2 - 2 v u <= 2 R^2 C^2 + 2 abs(v u)``.

    For a given ``u`` the sum of these bounds is linear in ``v`` on either side of 0,
    hence largest at ``abs(v) = R^2`` or at ``v = 0``. At ``v = 0`` it is no more than
    at ``u = 0``, where ``v`` plays no part. So with ``P = abs(u)`` and ``S^2 = s^2 +
    R^2 t^2``

        ``squared change <= S^2 (2 C^4 - 2 P^2) + R^2 (2 C^2 + 2 P)``,

    a concave parabola in ``P`` with its top at ``R^2 / (2 S^2)``, over ``[0, C^2]``.
    Gram matrices move most for orthogonal rows, products for opposite ones. Equality
    for rows of norm ``C`` with ``x . z = -P`` and the same ``r``. At ``P = 0`` it is
    twice what one record adds, so a pair with one record missing is covered.
    """
    check_choice("adjacency", adjacency, ADJACENCIES)
    square = check_positive("row_norm", row_norm) ** 2
    products = check_positive("factor_norm", factor_norm) ** 2
    check_positive("gram_scale", gram_scale)
    check_real("class_gram_scale", class_gram_scale, low=0.0, include_high=False)
    grams = gram_scale**2 + products * class_gram_scale**2
    check_positive("squared scales", grams)  # underflow fails
    if adjacency == "add_remove":
        moved = grams * square**2 + products * square
    else:
        shared = min(square, products / (2.0 * grams))
        moved = 2.0 * (grams * (square**2 - shared**2) + products * (square + shared))
    # scaled sums are rounded twice, once as sums and once by the scale
    return check_positive("sensitivity", math.sqrt(moved) * (1.0 + 2.0 * ROUNDING))
