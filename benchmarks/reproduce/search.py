"""Tune each method on the test set, as the paper does, and fit the best again."""

import math
import time
from dataclasses import asdict, dataclass, field, fields

import numpy as np

from reproduce import adam, feature_covariance, least_squares, newton
from reproduce.problem import Problem

METHODS = {
    method.LABEL: method for method in (least_squares, newton, feature_covariance, adam)
}
LIMITS = (1e-8, 1e8)  # Tables 6 to 9
# Parts of the trials, and the spread in decades around the best ones before. The
# last part runs the best ones again: with few test rows the luckiest is not the best.
ROUNDS = ((0.5, None), (0.3, 0.4), (0.2, 0.0))
N_FITS, BEST = 5, 3


@dataclass
class Cell:
    """One cell of a table: the best trial, fitted again with fresh noise."""

    method: str
    epochs: int
    epsilon: float
    scores: list[float]
    tuning_accuracy: float
    parameters: dict[str, float]
    trials: int
    seconds: float
    start: list[dict[str, float]] = field(default_factory=list, repr=False)

    @property
    def mean(self):
        """Mean accuracy over the fits."""
        return float(np.mean(self.scores))

    @property
    def error(self):
        """Standard error of the mean."""
        return float(np.std(self.scores, ddof=1) / math.sqrt(len(self.scores)))

    def as_dict(self):
        """Return what a results file holds."""
        return asdict(self) | {"mean": self.mean, "error": self.error}

    @classmethod
    def from_dict(cls, content):
        """Return the cell of a results file."""
        names = [each.name for each in fields(cls)]
        return cls(**{name: content[name] for name in names})


def tuned(
    X,
    y,
    X_test,
    y_test,
    *,
    epsilons,
    delta=1e-5,
    trials=40,
    methods=tuple(METHODS),
    epochs=None,
    n_classes=None,
    project=True,
    bias="fixed",
    seed=0,
    known=(),
    on_cell=None,
):
    """Return the paper's methods, each cell with its best parameters.

    Parameters
    ----------
    X, y, X_test, y_test : arrays
        Rows as they are, and labels ``0, ..., m - 1``.
    epsilons : sequence of float
        ``inf`` turns noise and clipping off.
    delta : float
    trials : int or dict of int to int
        Trials of a cell, or of the cells of each number of epochs.
    methods : sequence of str
        Among ``METHODS``.
    epochs : sequence of int, optional
        Keep only these numbers of epochs.
    n_classes : int, optional
    project : bool
        Make noisy matrices symmetric and positive semidefinite, as the authors' code
        does, instead of leaving them as printed.
    bias : {"fixed", "trained", "none"}
        Of DP-FC and DP-Adam: -10 in every logit, as in the authors' code; trained from
        -10 on, in a column of ones, as the paper prints it; or none. The others have
        none.
    seed : int
    known : sequence of Cell
        Of an earlier, interrupted run; they are kept and not run again.
    on_cell : callable, optional
        Called with every cell when it is done.

    Returns
    -------
    cells : list of Cell

    Notes
    -----
    The trial with the best *test* accuracy is fitted again ``N_FITS`` times with fresh
    noise; mean and error are over those. A cell's search begins with the best trials
    of its neighbours: the same method with another epsilon or with fewer epochs.
    """
    problem = Problem(X, y, X_test, y_test, n_classes)
    rng = np.random.default_rng([seed, len(known)])
    cells = list(known)
    done = {(cell.method, cell.epochs, cell.epsilon) for cell in cells}
    for name in methods:
        method = METHODS[name]
        for n_iter in method.EPOCHS:
            if epochs is not None and n_iter not in epochs:
                continue
            for epsilon in sorted(epsilons, reverse=True):
                if (name, n_iter, epsilon) in done:
                    continue
                budget = trials if isinstance(trials, int) else trials[n_iter]
                near = _neighbours(cells, name, n_iter, epsilon)
                rows, options = _biased(method, problem, bias)
                options["project"] = project
                cell = _tune(
                    method, rows, epsilon, delta, n_iter, budget, near, options, rng
                )
                cells.append(cell)
                if on_cell:
                    on_cell(cell)
    return cells


def _biased(method, problem, bias):
    """Return the rows that a method is fitted on, and its options of the bias."""
    if not hasattr(method, "BIAS"):
        return problem, {}
    if bias == "trained":
        return problem.with_constant, {"trained": True}
    return problem, {"bias": {"fixed": method.BIAS, "none": 0.0}[bias]}


def best_cells(cells):
    """Return the cell of the highest mean accuracy for each epsilon."""
    best = {}
    for cell in cells:
        if cell.epsilon not in best or cell.mean > best[cell.epsilon].mean:
            best[cell.epsilon] = cell
    return best


def _neighbours(cells, name, n_iter, epsilon):
    """Return the cell of the nearest epsilon, and those with fewer epochs."""

    def distance(cell):
        return abs(math.log(min(cell.epsilon, 1e3) / min(epsilon, 1e3)))

    own = [cell for cell in cells if cell.method == name]
    same = sorted((c for c in own if c.epochs == n_iter), key=distance)
    shorter = [c for c in own if c.epochs < n_iter and c.epsilon == epsilon]
    return same[:1] + shorter


def _tune(method, problem, epsilon, delta, n_iter, budget, near, options, rng):
    began = time.perf_counter()
    private = not math.isinf(epsilon)
    sigma = method.noise_multiplier(epsilon, delta, n_iter) if private else 0.0
    settings = {"sigma": sigma, "n_iter": n_iter, **options}
    clips = _clip_norms(problem) if private else [math.inf]
    tried, accuracies = [], []
    for part, spread in ROUNDS:
        count = max(1, round(part * budget))
        order = _ranking(accuracies)[:BEST]
        if spread is None:
            new = _first(method, n_iter, near, clips, count, rng)
        elif spread:
            new = [
                _jitter(tried[order[i % len(order)]], spread, clips, rng)
                for i in range(count)
            ]
        else:
            new = [tried[order[i % len(order)]] for i in range(count)]
        table = _parameters(method, problem, new, sigma, n_iter)
        if spread == 0:
            table["draw"] = 1 + np.arange(count) // len(order)
        coefs = method.fit(problem, table, rng=rng, **settings)
        found = problem.accuracy(coefs)
        if spread == 0:
            for i, accuracy in enumerate(found):
                accuracies[order[i % len(order)]].append(float(accuracy))
        else:
            tried += new
            accuracies += [[float(accuracy)] for accuracy in found]
    order = [i for i in _ranking(accuracies) if i in set(order)]
    best = tried[order[0]]
    again = _parameters(method, problem, [best] * N_FITS, sigma, n_iter)
    again["draw"] = np.arange(N_FITS)
    scores = problem.accuracy(method.fit(problem, again, rng=rng, **settings))
    return Cell(
        method=method.LABEL,
        epochs=n_iter,
        epsilon=epsilon,
        scores=[float(score) for score in scores],
        tuning_accuracy=max(map(max, accuracies)),
        parameters={
            name: float(values[0]) for name, values in again.items() if name != "draw"
        },
        trials=sum(map(len, accuracies)),
        seconds=time.perf_counter() - began,
        start=[tried[i] for i in order],
    )


def _ranking(accuracies):
    return list(np.argsort([-np.mean(values) for values in accuracies], kind="stable"))


def _first(method, n_iter, near, clips, count, rng):
    """Return the best points of neighbouring cells, and random ones."""
    known = [dict(start) for cell in near for start in cell.start[:2]]
    known = known[: count // 2]
    for point in known:
        if point["clip_norm"] not in clips:
            point["clip_norm"] = clips[0]
    return known + [
        _draw(method, n_iter, clips, rng) for _ in range(count - len(known))
    ]


def _clip_norms(problem):
    """Return the paper's two clip norms, and two on the scale of the rows."""
    radius = float(np.float32(problem.radius))
    return sorted({0.005, 1.0, 0.3 * radius, radius})


def _draw(method, n_iter, clips, rng):
    point = {
        name: rng.uniform(low, high)
        for name, (low, high) in method.decades(n_iter).items()
    }
    return point | {"clip_norm": clips[rng.integers(len(clips))]}


def _jitter(point, spread, clips, rng):
    moved = {
        name: value + spread * rng.standard_normal()
        for name, value in point.items()
        if name != "clip_norm"
    }
    keep = rng.random() < 0.75
    clip = point["clip_norm"] if keep else clips[rng.integers(len(clips))]
    return moved | {"clip_norm": clip}


def _parameters(method, problem, points, sigma, n_iter):
    """Return the parameters themselves from points in decades around the scales."""
    table = {"clip_norm": [], "draw": np.zeros(len(points), int)}
    for point in points:
        units = method.scales(problem, point["clip_norm"], sigma, n_iter)
        table["clip_norm"].append(point["clip_norm"])
        for name, unit in units.items():
            value = min(max(unit * 10 ** point[name], LIMITS[0]), LIMITS[1])
            table.setdefault(name, []).append(value)
    return {name: np.asarray(values) for name, values in table.items()}
