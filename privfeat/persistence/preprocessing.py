"""What a file of a private step of preprocessing must hold."""

import numpy as np

from privfeat.persistence.model_folder import Arrays, PathLike, damaged

# The fitted arrays of each step, with a letter for each axis: those of one letter are
# equally long, and ``d`` is the number of features.
STEPS = {
    "DPPCA": {"components_": "kd", "explained_variance_ratio_": "k", "mean_": "d"},
    "DPClassCounts": {"classes_": "m", "counts_": "m", "class_prior_": "m"},
    "DPQuantiles": {"quantiles_": "qd", "cdf_": "dc"},
    "DPStandardScaler": {"mean_": "d", "var_": "d", "scale_": "d"},
}
# What is above 0: transforms divide by it.
_POSITIVE = ("scale_",)


def fitted_of_step(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the arrays and of the numbers that a step is fitted to."""
    axes = STEPS[name]
    counts = ("n_features_in_",) if "d" in "".join(axes.values()) else ()
    return (*axes, *(("feature_names_in_",) if counts else ())), counts


def check_step(
    path: PathLike, name: str, arrays: Arrays, fitted: dict[str, int]
) -> None:
    """Raise unless the arrays of a step go together."""
    sizes = {"d": fitted["n_features_in_"]} if fitted else {}
    axes = STEPS[name] | ({"feature_names_in_": "d"} if fitted else {})
    for key, array in arrays.items():
        letters = axes[key]
        agree = len(letters) == array.ndim and all(
            sizes.setdefault(letter, size) == size
            for letter, size in zip(letters, array.shape, strict=True)
        )
        if not agree:
            raise damaged(path, "the shapes of its arrays do not agree")
        if key in _POSITIVE and not np.all(array > 0.0):
            raise damaged(path, f"{key} is not above 0")
