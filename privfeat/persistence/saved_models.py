"""Saved models as they are read: checked, but not yet estimators.

Nothing here imports JAX or scikit-learn, so that statements and predictions come soon.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privfeat._checks import check_choice, check_real
from privfeat._encoding import decode
from privfeat._types import LOSS_OPTIONS, ROW_SCALINGS, STAYS_AT_HOME
from privfeat.exceptions import PrivacyError
from privfeat.persistence.model_checks import (
    STEPS,
    agrees_with_its_releases,
    check_shapes,
    check_step,
    check_values,
)
from privfeat.persistence.model_folder import Arrays, ModelFileError, PathLike, damaged

if TYPE_CHECKING:
    from privfeat.core.statement.privacy_statement import PrivacyStatement
    from privfeat.estimation.predictor import LinearPredictor

PIPELINE = "PrivatePipeline"
# A step whose declaration says how rows of a table are read.
COLUMNS = "PublicColumns"
HOMES = {
    "privfeat.linear": (
        "DPFC",
        "DPAdamLinear",
        "DPLeastSquares",
        "DPLeastSquaresRegressor",
        "DPNearestMean",
        "DPNewton",
    ),
    "privfeat.networks": ("DPSGDClassifier", "DPSGDRegressor"),
    "privfeat.pipeline": (PIPELINE,),
    "privfeat.preprocessing": tuple(STEPS),
}
# The fitted arrays and numbers of the estimators of each home.
FITTED = {
    "privfeat.linear": (
        (
            *("classes_", "coef_", "intercept_", "center_", "feature_names_in_"),
            *("class_weight_", "moments_"),
        ),
        ("n_features_in_", "n_iter_", "multilabel_"),
    ),
    "privfeat.networks": (
        ("classes_", "feature_names_in_", "input_shape_", "pixel_scale_"),
        ("n_outputs_", "n_iter_"),
    ),
}
_SHARED = (
    "accounting adjacency arithmetic budget_split clip_norm delta epsilon "
    "fit_intercept intercept_scaling ledger max_group_size noise_multiplier "
    "random_state rho row_scaling user_bound verbose"
)
_CLASSIFIER = f"{_SHARED} center classes max_labels"
_STEPS = (
    f"{_CLASSIFIER} gradient_clip_norm intercept_init learning_rate loss n_iter ridge"
)
_WEIGHTED = f"{_STEPS} class_weight"
# The parameters of the linear estimators, without importing them.
PARAMETERS = {
    "DPFC": f"{_WEIGHTED} gram_clip_norm gram_noise prior public",
    "DPAdamLinear": f"{_WEIGHTED} iterate optimizer prior public sampling_prob",
    "DPLeastSquares": (
        f"{_CLASSIFIER} alpha class_gram class_weight gram_noise prior public ridge"
    ),
    "DPLeastSquaresRegressor": (
        f"{_SHARED} n_iter prior ridge target_bounds target_scaling"
    ),
    "DPNearestMean": _CLASSIFIER,
    "DPNewton": f"{_STEPS} hessian_noise",
}
# What a fit did before it had a parameter, where that is not the default.
_USERS_BEFORE = {"user_bound": "count"}
_BEFORE = {"DPLeastSquaresRegressor": _USERS_BEFORE | {"n_iter": 1}}
OPTIONAL = {
    *("classes_", "feature_names_in_", "n_iter_", "multilabel_", "pixel_scale_"),
    *("class_weight_", "moments_"),
}
# The arrays of a network, by the names of its parameters.
PARAMETER = "parameters_/"
_REGRESSORS = ("DPLeastSquaresRegressor", "DPSGDRegressor")


@dataclass(frozen=True)
class SavedModel:
    """What a folder holds, checked as far as that needs no estimator."""

    name: str  # of the estimator
    home: str  # the package that it is imported from
    document: dict[str, Any]  # the whole ``model.json``
    arrays: Arrays  # fitted ones
    parameters: Arrays  # of a network, by their names
    fitted: dict[str, Any]  # fitted numbers
    params: dict[str, Any]  # of the constructor

    @property
    def classifier(self) -> bool:
        """Whether it predicts classes, and not numbers."""
        return self.name not in _REGRESSORS


def checked(path: PathLike, document: dict[str, Any], arrays: Arrays) -> SavedModel:
    """Return one model, of a document and of arrays that are its own.

    What ``save`` cannot have written is a ModelFileError, as for `persistence.load`.
    """
    name, home = document["estimator"], home_of(document["estimator"])
    if home is None or name == PIPELINE:
        raise ModelFileError(
            f"{str(path)!r} holds an estimator {name!r} that is not one of "
            f"{known_names()}."
        )
    network = home == "privfeat.networks"
    parameters = {
        key.removeprefix(PARAMETER): arrays.pop(key)
        for key in list(arrays)
        if network and key.startswith(PARAMETER)
    }
    fitted = dict(document["fitted"])
    if not all(type(value) is int and value >= 0 for value in fitted.values()):
        raise damaged(path, "its counts are no whole numbers")
    known = {name for names in fitted_of(name) for name in names}
    missing = known - {*arrays, *fitted} - OPTIONAL
    if missing or not {*arrays, *fitted} <= known or network != bool(parameters):
        raise damaged(path, "the fitted attributes are not those of an estimator")
    step = name in STEPS
    if not step and ("classes_" in arrays) == (name in _REGRESSORS):
        raise damaged(path, "classes are for a classifier, and it needs them")
    if step:
        check_step(path, name, arrays, fitted)
    elif not network:
        if "classes_" in arrays:
            fitted["multilabel_"] = bool(fitted.get("multilabel_", 0))
        check_shapes(path, arrays, fitted)
    check_values(path, document["class_names"], arrays, parameters)
    params = read_params(path, document["params"])
    for key, then in (
        _BEFORE.get(name, _USERS_BEFORE).items() if home == "privfeat.linear" else ()
    ):
        params.setdefault(key, then)
    return SavedModel(name, home, document, arrays, parameters, fitted, params)


def read_params(path: PathLike, written: dict[str, Any]) -> dict[str, Any]:
    """Return constructor parameters, none of which stays at home."""
    try:
        params = {key: decode(value) for key, value in written.items()}
    except (
        ArithmeticError,
        AttributeError,
        KeyError,
        MemoryError,
        TypeError,
        ValueError,
    ) as error:
        raise damaged(path, "the parameters do not fit the estimator") from error
    planted = [key for key in STAYS_AT_HOME if params.get(key) is not None]
    if planted:
        raise damaged(path, f"it holds {planted[0]}, which is never written")
    return params


def predictor_of(path: PathLike, saved: SavedModel) -> "LinearPredictor":
    """Return a linear model for predictions, from the parameters that they depend on.

    ModelFileError if one of these is missing, or is none that a fit takes, or there are
    others than those of the estimator.
    """
    if not saved.params.keys() <= set(PARAMETERS[saved.name].split()):
        raise damaged(path, "the parameters do not fit the estimator")
    try:
        return as_predictor(saved.name, saved.params, saved.arrays, saved.fitted)
    except (TypeError, ValueError, KeyError) as error:
        raise damaged(path, "the parameters do not fit the estimator") from error


def as_predictor(
    name: str, params: Mapping[str, Any], arrays: Arrays, fitted: Mapping[str, Any]
) -> "LinearPredictor":
    """Return a linear model for predictions, of all that these depend on.

    KeyError, TypeError or ValueError if a parameter is missing, or none that a fit
    takes.
    """
    from privfeat.estimation.predictor import DEFAULT_BOUNDS, LinearPredictor

    # two have no parameter of this name
    default = "softmax" if name == "DPNearestMean" else "squared"
    loss = check_choice("loss", params.get("loss", default), LOSS_OPTIONS)
    multilabel = fitted.get("multilabel_", False)
    if loss == "auto":
        loss = "sigmoid" if multilabel else "softmax"
    weight = check_real("alpha", params.get("alpha", 0.0), low=0.0)
    low, high = params.get("target_bounds") or DEFAULT_BOUNDS
    return LinearPredictor(
        name=name,
        coef=arrays["coef_"],
        intercept=arrays["intercept_"],
        center=arrays["center_"],
        row_scaling=check_choice("row_scaling", params["row_scaling"], ROW_SCALINGS),
        classes=arrays.get("classes_"),
        multilabel=multilabel,
        loss=loss,
        negative_weight=weight if params.get("class_gram") else None,
        bounds=(
            check_real("target_bounds", low, low=-1e100),
            check_real("target_bounds", high, low=-1e100),
        ),
    )


def read_statement(path: PathLike, document: dict[str, Any]) -> "PrivacyStatement":
    """Return the statement of a document, if its releases do not contradict it."""
    from privfeat.core.statement.privacy_statement import PrivacyStatement

    try:
        statement = PrivacyStatement.from_json(json.dumps(document["privacy"]))
    except PrivacyError as error:
        raise damaged(path, "it holds no privacy statement") from error
    if not agrees_with_its_releases(statement):
        raise damaged(path, "its statement promises more than its releases give")
    return statement


def fitted_of(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the fitted arrays and numbers of an estimator."""
    if name not in STEPS:
        return FITTED[str(home_of(name))]
    axes = STEPS[name]
    counts = ("n_features_in_",) if "d" in "".join(axes.values()) else ()
    return (*axes, *(("feature_names_in_",) if counts else ())), counts


def home_of(name: Any) -> str | None:
    """Return the package of the estimator of this name, or None."""
    return next((home for home, names in HOMES.items() if name in names), None)


def known_names() -> str:
    """Return the names of all estimators that can be saved, for messages."""
    return ", ".join(name for names in HOMES.values() for name in names)
