"""Private pipelines on disk: what each step is, and its arrays under its name."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from privfeat._encoding import as_strings, decode
from privfeat._types import SET_BY_PIPELINE
from privfeat.persistence.model_folder import (
    Arrays,
    PathLike,
    damaged,
    read_arrays,
)
from privfeat.persistence.saved_models import (
    PIPELINE,
    SavedModel,
    checked_model,
    home_of,
)

Parts = tuple[dict[str, Any], Arrays, list[str]]
# Public steps, and where they are imported from: nothing else is, by a file's word.
_PUBLIC = {
    "PublicColumns": "privfeat.preprocessing",
    "Binarizer": "sklearn.preprocessing",
    "Normalizer": "sklearn.preprocessing",
    "PolynomialFeatures": "sklearn.preprocessing",
}
_NAMES, _COUNT = "feature_names_in_", "n_features_in_"


def is_private(step: Any) -> bool:
    """Return whether a step that was read has a part in the statement."""
    return home_of(type(step).__name__) is not None


def written_pipeline(
    pipeline: Any,
    written_before: Callable[[Any, None], dict[str, Any]],
    fitted_parts: Callable[[Any], Parts],
) -> Parts:
    """Return the fields, arrays and objects of a fitted pipeline.

    Raises
    ------
    TypeError
        If a step has no safe written form.
    """
    steps, (arrays, objects) = [], _own(pipeline)
    for name, step in pipeline.steps_:
        kind = type(step).__name__
        public = _class_of(kind) is type(step)
        if not (public or is_private(step)):
            raise TypeError(
                f"step {name!r} must be of privfeat or one of {', '.join(_PUBLIC)} to "
                f"be saved, got {kind}. Make what it makes before the pipeline."
            )
        if public:
            fields, (own, texts) = {"fitted": _counts(step)}, _own(step)
        else:
            fields, own, texts = fitted_parts(step)
        arrays |= {f"{name}/{key}": array for key, array in own.items()}
        objects += [f"{name}/{key}" for key in texts]
        params = written_before(step, None)["params"]
        for key in SET_BY_PIPELINE:  # parts of the budget, which the pipeline has
            params.pop(key, None)
        steps.append({"name": name, "estimator": kind, "params": params, **fields})
    return {"fitted": _counts(pipeline), "steps": steps}, arrays, objects


def made_pipeline(
    path: PathLike,
    document: dict[str, Any],
    made_of: Callable[[PathLike, SavedModel], Any],
) -> Any:
    """Return the fitted pipeline of a document, still without its statement.

    Raises
    ------
    ModelFileError
        If ``save`` cannot have written it.
    """
    made = getattr(import_module(str(home_of(PIPELINE))), PIPELINE)
    arrays, named = read_arrays(path, document["arrays"]), document.get("steps", [])
    if not named or not all(map(_is_entry, named)):
        raise damaged(path, "it holds no steps of a pipeline")
    fitted: list[tuple[str, Any]] = []
    given: list[tuple[str, Any]] = []
    for entry in named:
        start = f"{entry['name']}/"
        own = {
            key.removeprefix(start): arrays.pop(key)
            for key in list(arrays)
            if key.startswith(start)
        }
        entry |= {"class_names": None}
        if entry["estimator"] in _PUBLIC:
            both = [_public_step(path, entry, own) for _ in range(2)]
        else:
            saved = checked_model(path, entry, own)
            both = [made_of(path, saved), made_of(path, saved)]
        given.append((entry["name"], _forgotten(both[0])))
        fitted.append((entry["name"], both[1]))
    if not arrays.keys() <= {_NAMES} or not document["fitted"].keys() <= {_COUNT}:
        raise damaged(path, "the fitted attributes are not those of a pipeline")
    try:
        params = {key: decode(value) for key, value in document["params"].items()}
        pipeline = made(given, **params)
    except (ArithmeticError, AttributeError, TypeError, ValueError) as error:
        raise damaged(path, "the parameters do not fit the estimator") from error
    if pipeline.ledger is not None or pipeline.random_state is not None:
        raise damaged(path, "it holds a ledger or a seed, which is never written")
    pipeline.steps_ = fitted
    for key, value in {**document["fitted"], **arrays}.items():
        setattr(pipeline, key, value)
    if hasattr(fitted[-1][1], "classes_"):
        pipeline.classes_ = fitted[-1][1].classes_
    return pipeline


def _is_entry(entry: Any) -> bool:
    kinds = {"name": str, "estimator": str, "params": dict, "fitted": dict}
    return (
        isinstance(entry, dict)
        and entry.keys() == kinds.keys()
        and all(isinstance(entry[key], kind) for key, kind in kinds.items())
    )


def _class_of(kind: str) -> Any:
    home = _PUBLIC.get(kind)
    return None if home is None else getattr(import_module(home), kind)


def _public_step(path: PathLike, entry: dict[str, Any], arrays: Arrays) -> Any:
    """Return a public step, fitted as ever: to a row of zeros, or not at all."""
    counts = entry["fitted"]
    known = counts.keys() <= {_COUNT} and arrays.keys() <= {_NAMES}
    if not known or not all(type(n) is int and 0 < n < 2**20 for n in counts.values()):
        raise damaged(path, "the fitted attributes are not those of a step")
    try:
        params = {key: decode(value) for key, value in entry["params"].items()}
        step = _class_of(entry["estimator"])(**params)
        if entry["estimator"] != "PublicColumns":
            step.fit(np.zeros((1, counts.get(_COUNT, 1))))
    except (ArithmeticError, AttributeError, TypeError, ValueError) as error:
        raise damaged(path, "the parameters do not fit the estimator") from error
    for key, value in {**counts, **arrays}.items():
        setattr(step, key, value)
    return step


def _forgotten(step: Any) -> Any:
    """Return a step as it was before it was fitted."""
    return type(step)(**step.get_params(deep=False))


def _own(estimator: Any) -> tuple[Arrays, list[str]]:
    if not hasattr(estimator, _NAMES):
        return {}, []
    return {_NAMES: as_strings(_NAMES, np.asarray(getattr(estimator, _NAMES)))}, [
        _NAMES
    ]


def _counts(estimator: Any) -> dict[str, int]:
    found = getattr(estimator, _COUNT, None)
    return {} if found is None else {_COUNT: int(found)}
