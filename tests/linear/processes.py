"""What each of several processes runs in `test_processes`.

``python processes.py FOLDER INDEX SIZE PORT CASE``; writes ``FOLDER/INDEX.npz``.
"""

import os
import signal
import sys
import warnings
from pathlib import Path

import numpy as np

from privfeat import (
    DPFC,
    DPAdamLinear,
    DPLeastSquares,
    DPNearestMean,
    DPNewton,
    PrivacyError,
)
from privfeat.core.sums.processes import current_team
from privfeat.core.sums.statistics import (
    exact_class_grams,
    exact_class_sums,
    exact_gradient,
    exact_gram,
)
from privfeat.core.sums.totals import Total
from privfeat.data import open_features
from privfeat.distributed import all_processes, initialize
from privfeat.estimation.rows.bounded import BoundedRows

N_CLASSES = 3
# Parameters of DPAdamLinear that two processes have differently.
DIFFERENT = {
    "clip_norm": [1e3, 1e-3],
    "gradient_clip_norm": [1.0, 2.0],
    "learning_rate": [1.0, 2.0],
    "center": [np.zeros(5), np.full(5, 0.1)],
    "row_scaling": ["clip", "unit"],
    "intercept_scaling": [0.1, 0.2],
    "fit_intercept": [True, False],
    "arithmetic": ["float64", "exact"],
    "random_state": [1, 2],
    "n_iter": [1, 2],
    "class_weight": [{0: 1.0}, {0: 2.0}],
}
REFUSALS = ("differs", "shuffled", "regrouped", "classes", "groups", "twice")
SHARED = REFUSALS[:3]


def estimators():
    """All, seeded, with every statistic between them."""
    options = {"epsilon": 1.0, "random_state": 7, "classes": range(N_CLASSES)}
    return {
        "squares": DPLeastSquares(class_gram=True, **options),
        "newton": DPNewton(n_iter=2, **options),
        "covariance": DPFC(n_iter=3, **options),
        "adam": DPAdamLinear(n_iter=3, **options),
        "weighted": DPFC(n_iter=2, class_weight="balanced", **options),
        "nearest": DPNearestMean(**options),
    }


def fit_all(X, y, **fit_options):
    """Return all exact sums, and the coefficients of all estimators."""
    warnings.simplefilter("ignore")
    rows = BoundedRows(
        X,
        np.asarray(y)[:, None],
        row_scaling="unit",
        clip_norm=1.0,
        intercept_scaling=0.1,
        team=current_team(),
        private=True,
    )
    coef = np.linspace(-2.0, 2.0, N_CLASSES * rows.n_columns).reshape(N_CLASSES, -1)

    def whole(exact):
        return exact.over(current_team(), "sum").value

    grams = exact_class_grams(rows, N_CLASSES)
    gradient = exact_gradient(rows, coef, loss="softmax", clip_norm=1.0)
    found = {
        "exact_gram": whole(exact_gram(rows)),
        "exact_sums": whole(exact_class_sums(rows, N_CLASSES)),
        "exact_grams": [whole(gram) for gram in grams],
        "exact_gradient": whole(gradient),
    }
    for name, clf in estimators().items():
        clf.fit(X, y, **fit_options)
        found[f"{name}_coef"], found[f"{name}_mean"] = clf.coef_, clf.center_
    return found


def main(folder, index, size, port, case):
    """Fit as process ``index`` of ``size``."""
    initialize(
        coordinator_address=f"localhost:{port}", num_processes=size, process_id=index
    )
    train = open_features(folder / "features.h5")["train"]
    X, y = train.X, train.y
    if case == "shared":
        with all_processes():
            found = fit_all(X, y)
            users = DPFC(
                epsilon=1.0, random_state=7, classes=range(3), n_iter=2,
                max_group_size=2,
            )  # fmt: skip
            users.fit(X, y, groups=np.arange(len(y)) // 4)
            found["users_coef"] = users.coef_
    elif case == "own":
        cut = 1500
        part = slice(cut) if index == 0 else slice(cut, None)
        with all_processes("own"):
            found = fit_all(np.asarray(X)[part], y[part])
    elif case == "unseeded":
        warnings.simplefilter("ignore")
        with all_processes():
            clf = DPFC(epsilon=1.0, classes=range(3), n_iter=2).fit(X, y)
        found = {"coef": clf.coef_}
    elif case == "killed":
        warnings.simplefilter("ignore")
        clf = DPFC(epsilon=1.0, classes=range(3), n_iter=2)
        with all_processes():
            clf.fit(X, y)
            if index == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                clf.fit(X, y)
            except PrivacyError as error:
                np.savez(folder / "0.npz", message=str(error))
                return
    elif case == "different":
        found = {name: different(X, y, index, name) for name in DIFFERENT}
        found |= mismatched_sums(index)
    else:
        found = {name: refusal(X, y, index, name) for name in REFUSALS}
    np.savez(folder / f"{index}.npz", **found)


def different(X, y, index, name):
    """Return what a fit raises whose processes differ in one parameter."""
    warnings.simplefilter("ignore")
    params = {"epsilon": 1.0, "classes": range(3), "n_iter": 1, "row_scaling": "clip"}
    clf = DPAdamLinear(**params | {name: DIFFERENT[name][index]})
    try:
        with all_processes():
            clf.fit(X, y)
    except PrivacyError as error:
        assert not hasattr(clf, "privacy_")
        return str(error)
    return "fitted"


def total_of(shape, grid_step, private):
    return Total(private, shape).sum(grid_step).over(current_team(), "sum")


def mismatched_sums(index):
    """Return what totals raise that differ in one thing: nothing is added."""
    found = {}
    cases = {
        "grid_step": [((2, 3), 1.0, True), ((2, 3), 2.0, True)],
        "shape": [((2, 3), 1.0, True), ((3, 2), 1.0, True)],
        "type": [((2, 3), 1.0, True), ((2, 3), 1.0, False)],
    }
    with all_processes("own"):
        for name, both in cases.items():
            shape, grid_step, private = both[index]
            try:
                found[f"sum_{name}"] = str(
                    total_of(shape, grid_step, private).grid_step
                )
            except PrivacyError as error:
                found[f"sum_{name}"] = str(error)
        for name, both in {"name": ("mean", "gram"), "value": ("mean", "mean")}.items():
            try:
                values = current_team().from_first(np.full(2, index + 0.5), both[index])
                found[f"release_{name}"] = values
            except PrivacyError as error:
                found[f"release_{name}"] = str(error)
        if index:  # one sum more than the other: at the next, positions differ
            next(current_team()._positions)
        try:
            found["position"] = str(total_of((2, 3), 1.0, True).grid_step)
        except PrivacyError as error:
            found["position"] = str(error)
    return found


def refusal(X, y, index, case):
    """Return what a fit that must not run raises."""
    warnings.simplefilter("ignore")
    rows = "shared" if case in SHARED else "own"
    if case == "shuffled":
        order = np.random.default_rng(index).permutation(len(y))
        X, y = np.asarray(X)[order], y[order]
    epsilon = 1.0 + (index if case == "differs" else 0)
    clf = DPFC(
        epsilon=epsilon,
        classes=None if case == "classes" else range(3),
        max_group_size=2 if case in ("groups", "regrouped") else None,
    )
    groups = np.arange(len(y)) if case == "groups" else None
    if case == "regrouped":
        groups = np.arange(len(y)) // (4 + index)
    try:
        with all_processes(rows):
            clf.fit(X, y, groups=groups)
    except (PrivacyError, ValueError) as error:
        assert not hasattr(clf, "privacy_")
        return str(error)
    return "fitted"


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:5]), sys.argv[5])
