"""What a file of a model must be, so that ``save`` can have written it."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from privfeat.persistence.model_folder import Arrays, PathLike, damaged

if TYPE_CHECKING:
    from privfeat.core.statement.privacy_statement import PrivacyStatement

# Relative. Another release of dp-accounting may find a slightly larger epsilon.
_TOLERANCE = 1e-3
_ROUNDING = 1e-9
# The fitted arrays of each step, with a letter for each axis: those of one letter are
# equally long, and ``d`` is the number of features.
STEPS = {
    "DPPCA": {"components_": "kd", "explained_variance_ratio_": "k", "mean_": "d"},
    "DPClassCounts": {"classes_": "m", "counts_": "m", "class_prior_": "m"},
    "DPQuantiles": {"quantiles_": "qd", "cdf_": "dc"},
    "DPStandardScaler": {"mean_": "d", "var_": "d", "scale_": "d"},
}


def agrees_with_its_releases(statement: "PrivacyStatement") -> bool:
    """Return whether a statement promises no more than its own releases give.

    Epsilon, mu and rho are computed anew, from the noise multipliers, counts and
    sampling probabilities that it states, or from its selection.
    """
    from privfeat.core.accounting.conversions import gaussian_epsilon, rho_from_mu
    from privfeat.core.accounting.pld import pld_epsilon
    from privfeat.core.accounting.rdp import rdp_epsilon
    from privfeat.core.accounting.selection import selection_epsilon

    stated, delta, least = statement.epsilon, statement.delta, 1.0 - _ROUNDING
    if not math.isfinite(stated):
        return True
    for record in statement.releases:
        stddev = record.noise_multiplier * record.l2_sensitivity
        if not record.noise_stddev >= stddev * least:
            return False
    try:
        if statement.selection is not None:
            chosen = statement.selection
            epsilon = selection_epsilon(chosen.run_mu, delta, chosen.runs)
        elif any(record.sampling_prob < 1.0 for record in statement.releases):
            if statement.mu is not None or statement.rho is not None:
                return False
            # Rényi divergences take milliseconds and give a little too much. Privacy
            # loss distributions take minutes if epsilon is far above the stated one.
            limit = 3.0 * stated + 5.0 if stated < 30.0 else math.inf
            epsilon = rdp_epsilon(statement.event(), delta)
            if epsilon > limit:
                return False
            if statement.accounting != "rdp":
                epsilon = pld_epsilon(statement.event(), delta)
        else:
            often = [r.planned().query.participations for r in statement.releases]
            squares = [r.noise_multiplier**2 for r in statement.releases]
            costs = [n / square for n, square in zip(often, squares, strict=True)]
            mu = math.sqrt(math.fsum(costs))
            if statement.mu is None or not statement.mu >= mu * least:
                return False
            if statement.rho is None or not statement.rho >= rho_from_mu(mu) * least:
                return False
            epsilon = gaussian_epsilon(mu * least, delta)
    except (ValueError, ArithmeticError):
        return False
    return stated >= epsilon * (1.0 - _TOLERANCE)


def check_shapes(path: PathLike, arrays: Arrays, fitted: dict[str, int]) -> None:
    """Raise unless the arrays of a linear estimator go together."""
    outputs: tuple[int, ...] = ()
    if "classes_" in arrays:
        n_rows = len(arrays["classes_"])
        outputs = (1 if n_rows <= 2 and not fitted["multilabel_"] else n_rows,)
    n_features = fitted["n_features_in_"]
    names = ("coef_", "intercept_", "center_")
    shapes = tuple(arrays[name].shape for name in names)
    classes = arrays.get("classes_", np.zeros(0))
    if arrays.get("class_weight_", classes).shape != classes.shape:
        raise damaged(path, "its class weights are not one for each class")
    moments = arrays["moments_"].shape if "moments_" in arrays else None
    # features, target and, with an intercept, the constant; of a regressor alone
    sizes = () if "classes_" in arrays else (n_features + 1, n_features + 2)
    known = moments is None or moments in [(size, size) for size in sizes]
    if not known or shapes != ((*outputs, n_features), outputs, (n_features,)):
        raise damaged(path, "the shapes of its arrays do not agree")


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
        # transforms divide by it
        if key == "scale_" and not np.all(array > 0.0):
            raise damaged(path, f"{key} is not above 0")


def check_values(
    path: PathLike, class_names: Any, arrays: Arrays, parameters: Arrays
) -> None:
    """Raise unless classes differ, names are strings and numbers are finite."""
    classes = arrays.get("classes_")
    kinds = {"classes_": "biufUO", "feature_names_in_": "UO", "input_shape_": "iu"}
    for name, array in (arrays | parameters).items():
        usual = array.dtype.isnative and array.dtype != np.longdouble
        if array.dtype.kind not in kinds.get(name, "f") or not usual:
            raise damaged(path, f"{name} is of another type")
        if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
            raise damaged(path, f"{name} is not finite")
    if classes is not None and not (
        classes.ndim == 1 and len({*classes.tolist()}) == len(classes)
    ):
        raise damaged(path, "its classes are not different labels")
    if class_names is not None and (
        classes is None
        or len(class_names) != len(classes)
        or not all(isinstance(name, str) for name in class_names)
    ):
        raise damaged(path, "its class names are not one string for each class")


def as_table(table: Any) -> dict[str, Any]:
    """Return what a model keeps of a table, as JSON has it.

    TypeError or ValueError if its columns are not declared, or the target is none of
    them.
    """
    from privfeat.preprocessing import plain_columns
    from privfeat.preprocessing.declaration import parse_columns

    if not isinstance(table, Mapping) or table.keys() != {"columns", "target"}:
        raise TypeError("table must be a mapping with columns and target.")
    parse_columns(table["columns"])
    if table["target"] is not None and table["target"] not in table["columns"]:
        raise ValueError("target of table must be one of its columns, or None.")
    plain: dict[str, Any] = plain_columns(table)
    return plain


def check_network(
    path: PathLike,
    estimator: Any,
    arrays: Arrays,
    fitted: dict[str, int],
    parameters: Arrays,
) -> None:
    """Raise unless the arrays are those of the network that is named."""
    shape, n_outputs = arrays["input_shape_"], fitted["n_outputs_"]
    if not isinstance(estimator.model, str):
        raise damaged(path, "its model is no name")
    names = arrays.get("feature_names_in_")
    if names is not None and names.shape != tuple(shape.tolist()):
        raise damaged(path, "its columns have not one name each")
    if shape.ndim != 1 or n_outputs != len(arrays.get("classes_", range(n_outputs))):
        raise damaged(path, "its shapes do not agree")
    from privfeat.networks.weights import shapes_of

    try:
        wanted = shapes_of(estimator.model, tuple(shape.tolist()), n_outputs)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise damaged(path, "its model cannot be made") from error
    if wanted != {name: leaf.shape for name, leaf in parameters.items()}:
        raise damaged(path, "its arrays are not those of its model")
