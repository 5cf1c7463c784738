"""Algorithms 1 to 4 of Mehta et al. (2023) as slow float64 loops over records.

Written from the paper, not from the library: every gradient and Hessian of a record is
formed, clipped and added on its own. Updates are in sums, so ``ridge`` is ``n`` times
the paper's lambda. ``noise`` maps (name, index, shape) to the noise to add to a sum:
``index`` counts the calls of that name.
"""

import math

import numpy as np


def no_noise(name, index, shape):
    return np.zeros(shape)


def clip(vector, radius):
    """``v min(1, C / norm(v))``, the ``clip`` of every algorithm."""
    norm = math.hypot(*np.ravel(vector))
    return vector * min(1.0, radius / norm) if norm > 0.0 else vector


def bounded_row(row, *, clip_norm, row_scaling, intercept_scaling=None):
    """One record's row with its constant, at norm ``clip_norm`` or at most that."""
    row = np.asarray(row, np.float64)
    constant = [] if intercept_scaling is None else [intercept_scaling]
    if row_scaling == "clip":
        return clip(np.array([*row, *constant]), clip_norm)
    norm = math.hypot(*row)
    direction = row / norm if norm > 0.0 else row
    share = clip_norm / math.hypot(1.0, intercept_scaling or 0.0)
    return np.array([*direction, *constant]) * share


def bounded_rows(features, **options):
    return np.array([bounded_row(row, **options) for row in features])


def feature_mean(features, *, row_scaling, clip_norm=1.0, noise=no_noise, stddev=0.0):
    """The mean of rows of norm 1 for "unit", else of clipped rows, from a noisy sum.

    A constant coordinate of half the norm of a row counts the records, at least one.
    ``stddev`` of the noise shrinks the sum as James & Stein (1961) do. An infinite
    ``clip_norm`` clips nothing, the mean neither. Ours, not the paper's.
    """
    unit = row_scaling == "unit"
    radius = 1.0 if unit or math.isinf(clip_norm) else clip_norm
    constant, weight = radius / 2.0, clip_norm if unit else 1.0
    one_record = weight / math.sqrt(1.25)
    total = np.zeros(features.shape[1] + 1)
    for row in features:
        total += bounded_row(
            row,
            clip_norm=clip_norm,
            row_scaling=row_scaling,
            intercept_scaling=constant,
        )
    total = total + noise("feature_mean", 0, (1, len(total)))[0]
    count, mean = max(total[-1] / constant, one_record), total[:-1]
    shrunk = 1.0 - len(mean) * stddev**2 / math.fsum(mean**2)
    mean = mean * max(0.0, shrunk) / count
    return clip(mean, math.inf if not unit and math.isinf(clip_norm) else radius)


def centred(features, mean, *, row_scaling):
    """Rows minus ``mean``, those of "unit" after scaling to norm 1; not bounded."""
    if row_scaling == "unit":
        features = bounded_rows(features, clip_norm=1.0, row_scaling="unit")
    return np.array([row - mean for row in features])


def carries(label, j):
    """Whether a record carries label ``j``: its only one, or one of a set."""
    return j in label if isinstance(label, (set, frozenset)) else j == label


def indicator(label, n_outputs):
    """Ones for the labels that a record carries; none is outside the outputs."""
    return np.array([float(carries(label, j)) for j in range(n_outputs)])


def prediction(loss, scores):
    """The ``p`` of the gradient ``(p - y) x^T``."""
    if loss == "squared":
        return np.array(scores, np.float64)
    if loss == "sigmoid":
        return np.array([_sigmoid(z) for z in scores])
    powers = [math.exp(z - max(scores)) for z in scores]
    return np.array(powers) / math.fsum(powers)


def _sigmoid(score):
    if score >= 0:
        return 1.0 / (1.0 + math.exp(-score))
    return math.exp(score) / (1.0 + math.exp(score))


def gram(rows):
    total = np.zeros((rows.shape[1], rows.shape[1]))
    for row in rows:
        total += np.outer(row, row)
    return total


def class_grams(rows, labels, n_outputs):
    total = np.zeros((n_outputs, rows.shape[1], rows.shape[1]))
    for row, label in zip(rows, labels, strict=True):
        for j in range(n_outputs):
            if carries(label, j):
                total[j] += np.outer(row, row)
    return total


def class_sums(rows, labels, n_outputs):
    total = np.zeros((n_outputs, rows.shape[1]))
    for row, label in zip(rows, labels, strict=True):
        for j in range(n_outputs):
            if carries(label, j):
                total[j] += row
    return total


def record_gradient(row, label, coef, loss, *, residual_radius=math.inf):
    """Derivative of one record's loss by ``coef``, (n_outputs, n_columns).

    ``residual_radius`` clips its first factor, as the library does for the squared
    loss, whose residuals have no bound.
    """
    residual = prediction(loss, coef @ row) - indicator(label, len(coef))
    return np.outer(clip(residual, residual_radius), row)


def gradient_sum(rows, labels, coef, loss, *, clip_norm=math.inf, **options):
    total = np.zeros_like(coef)
    for row, label in zip(rows, labels, strict=True):
        gradient = record_gradient(row, label, coef, loss, **options)
        total += clip(gradient, clip_norm)
    return total


def record_hessian(row, coef, loss):
    """The diagonal blocks of one record's Hessian, (n_outputs, n_columns, ...)."""
    p = prediction(loss, coef @ row)
    return np.array([p_j * (1.0 - p_j) * np.outer(row, row) for p_j in p])


def hessian_blocks(rows, coef, loss):
    size = rows.shape[1]
    total = np.zeros((len(coef), size, size))
    for row in rows:
        total += record_hessian(row, coef, loss)
    return total


class _Noisy:
    """Adds ``noise`` to sums and counts them."""

    def __init__(self, noise):
        self._noise, self._counts = noise, {}

    def __call__(self, name, value):
        index = self._counts.get(name, 0)
        self._counts[name] = index + 1
        return value + self._noise(name, index, value.shape)


def first_order(
    rows,
    labels,
    coef,
    *,
    loss,
    n_iter,
    learning_rate,
    optimizer="sgd",
    ridge=0.0,
    clip_norm=math.inf,
    iterate="last",
    noise=no_noise,
):
    """Algorithm 1 with SGD, momentum 0.9, or Adam (Kingma & Ba 2015).

    Adam's mean of gradients remembers a sixth of the steps.
    """
    decay = min(max(1.0 - 6.0 / n_iter, 0.5), 0.9)
    noisy = _Noisy(noise)
    first, second, iterates = np.zeros_like(coef), np.zeros_like(coef), []
    for t in range(1, n_iter + 1):
        exact = gradient_sum(rows, labels, coef, loss, clip_norm=clip_norm)
        gradient = noisy("gradient", exact) + ridge * coef
        if optimizer == "sgd":
            step = gradient
        elif optimizer == "momentum":
            first = 0.9 * first + gradient
            step = first
        else:
            first = decay * first + (1.0 - decay) * gradient
            second = 0.999 * second + 0.001 * gradient**2
            corrected = second / (1.0 - 0.999**t)
            step = first / (1.0 - decay**t) / (np.sqrt(corrected) + 1e-8)
        coef = coef - learning_rate * step
        iterates.append(coef)
    return np.mean(iterates, axis=0) if iterate == "average" else coef


def newton(
    rows,
    labels,
    coef,
    *,
    loss,
    n_iter,
    learning_rate,
    ridge,
    gradient_clip_norm=math.inf,
    first_gram=False,
    noise=no_noise,
):
    """Algorithm 2; ``first_gram``: the first step's blocks from one noisy Gram matrix.

    All ``m`` probabilities are ``1 / m`` then, for equal intercepts and the softmax.
    """
    noisy = _Noisy(noise)
    for t in range(n_iter):
        exact = gradient_sum(rows, labels, coef, loss, clip_norm=gradient_clip_norm)
        gradient = noisy("gradient", exact)
        step, m = np.zeros_like(coef), len(coef)
        if first_gram and t == 0:
            blocks = [(m - 1) / m**2 * noisy("gram", gram(rows))] * m
        else:
            exact = hessian_blocks(rows, coef, loss)
            blocks = (noisy("hessian", block) for block in exact)
        for j, block in enumerate(blocks):
            hessian = block + ridge * np.eye(rows.shape[1])
            step[j] = np.linalg.solve(hessian, gradient[j])
        coef = coef - learning_rate * step
    return coef


def least_squares(
    rows, labels, n_outputs, *, ridge, alpha=1.0, class_gram=True, noise=no_noise
):
    """Algorithm 3; without ``class_gram``, ridge regression ``(G + ridge I)^-1 b``."""
    noisy = _Noisy(noise)
    noisy_gram = noisy("gram", gram(rows))
    sums = noisy("class_sums", class_sums(rows, labels, n_outputs))
    coef = np.zeros((n_outputs, rows.shape[1]))
    for j, block in enumerate(class_grams(rows, labels, n_outputs)):
        matrix = noisy_gram
        if class_gram:
            matrix = noisy("class_grams", block) + alpha * noisy_gram
        coef[j] = np.linalg.solve(matrix + ridge * np.eye(rows.shape[1]), sums[j])
    return coef


def feature_covariance(
    rows,
    labels,
    coef,
    *,
    loss,
    n_iter,
    learning_rate,
    ridge,
    gram_clip_norm=math.inf,
    gradient_clip_norm=math.inf,
    noise=no_noise,
):
    """Algorithm 4."""
    noisy = _Noisy(noise)
    clipped = np.array([clip(row, gram_clip_norm) for row in rows])
    matrix = noisy("gram", gram(clipped)) + ridge * np.eye(rows.shape[1])
    inverse = np.linalg.inv(matrix)
    for _ in range(n_iter):
        exact = gradient_sum(rows, labels, coef, loss, clip_norm=gradient_clip_norm)
        coef = coef - learning_rate * noisy("gradient", exact) @ inverse
    return coef
