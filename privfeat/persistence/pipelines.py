"""Pipelines on disk: one model folder, with what each step is and what it learned.

``model.json`` lists the steps in their order; arrays of step 2 are named ``2/...``. So
a pipeline is written and replaced in one move, as a model is, and is read by the same
checks. A `PrivatePipeline` has one statement, a ``Pipeline`` of scikit-learn that of
its one private step. Public steps learn nothing: a file holds their parameters, and
the names and the number of their columns.
"""

import json
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from privfeat._types import SET_BY_PIPELINE
from privfeat.persistence.model_checks import check_values
from privfeat.persistence.model_folder import (
    Arrays,
    PathLike,
    damaged,
    read_arrays,
    read_document,
)
from privfeat.persistence.saved_models import (
    COLUMNS,
    PIPELINE,
    SavedModel,
    checked,
    home_of,
    read_params,
    read_statement,
)
from privfeat.persistence.written import (
    Written,
    is_from,
    is_ours,
    written_model,
    written_params,
)

# Pipelines and public steps, and where they are imported from: nothing else is, by a
# file's word.
PIPELINES = {"Pipeline": "sklearn.pipeline", PIPELINE: "privfeat.pipeline"}
HASHING = "HashingVectorizer"  # fitted to nothing
PUBLIC = {
    COLUMNS: "privfeat.preprocessing",
    "Binarizer": "sklearn.preprocessing",
    "Normalizer": "sklearn.preprocessing",
    "PolynomialFeatures": "sklearn.preprocessing",
    HASHING: "sklearn.feature_extraction.text",
}
_NAMES, _COUNT = "feature_names_in_", "n_features_in_"
# What a pipeline has beside its steps for its own work, a folder for example.
NOT_WRITTEN = frozenset({"steps", "memory", "verbose", "transform_input"})
_FIELDS = {"name": str, "estimator": str, "params": dict, "fitted": dict}


def is_pipeline(estimator: Any) -> bool:
    """Return whether this is a pipeline that may be saved, and no subclass of one."""
    return is_from(PIPELINES.get(type(estimator).__name__), estimator)


def written_pipeline(pipeline: Any) -> Written:
    """Return what is written of a fitted pipeline.

    TypeError if a step has no safe written form; ValueError if there is no statement of
    the whole, and not exactly one of a step.
    """
    from sklearn.utils.validation import check_is_fitted

    private = type(pipeline).__name__ == PIPELINE
    if private:
        check_is_fitted(pipeline)
    entries: list[dict[str, Any]] = []
    own = _columns_of(pipeline) if private else Written({"fitted": {}}, {})
    arrays = dict(own.arrays)
    for number, (name, step) in enumerate(
        pipeline.steps_ if private else pipeline.steps
    ):
        written = written_model(step) if is_ours(step) else _written_public(name, step)
        entry = {"name": name, "estimator": type(step).__name__, **written.entry}
        if private:  # budgets of steps are parts of the pipeline's
            entry.pop("privacy", None)
            for key in SET_BY_PIPELINE:
                entry["params"].pop(key, None)
        entries.append(entry)
        arrays |= {f"{number}/{key}": array for key, array in written.arrays.items()}
    stated = [entry["privacy"] for entry in entries if "privacy" in entry]
    if not private and len(stated) != 1:
        raise ValueError(
            "a Pipeline must have one step with a privacy statement to be saved, got "
            f"{len(stated)}: no statement covers it as a whole. A PrivatePipeline has "
            "one for all of its steps."
        )
    whole = json.loads(pipeline.privacy_.to_json()) if private else stated[0]
    params = {"params": written_params(pipeline, NOT_WRITTEN)}
    entry = {**params, **own.entry, "steps": entries, "privacy": whole}
    first = pipeline.steps[0][1]
    reads_tables = type(first).__name__ == COLUMNS
    table = {"columns": first.columns, "target": None} if reads_tables else None
    return Written(entry, arrays, table)


def read_steps(path: PathLike) -> dict[str, SavedModel]:
    """Return the steps of a saved pipeline by their names; else the model alone."""
    document = read_document(path)
    arrays = read_arrays(path, document["arrays"])
    if document["estimator"] not in PIPELINES:
        if "steps" in document:
            raise damaged(path, "its steps are not those of a pipeline")
        return {"": checked(path, document, arrays)}
    entries, fitted = document.get("steps"), document["fitted"]
    private = document["estimator"] == PIPELINE
    arrays.pop(_NAMES if private else "", None)
    if not entries or not fitted.keys() <= ({_COUNT} if private else set()):
        raise damaged(path, "its steps are not those of a pipeline")
    last, found = len(entries) - 1, {}
    for number, entry in enumerate(entries):
        prefix = f"{number}/"
        own = {
            key.removeprefix(prefix): arrays.pop(key)
            for key in list(arrays)
            if key.startswith(prefix)
        }
        stated = {"privacy"} if isinstance(entry, dict) and "privacy" in entry else ()
        if not isinstance(entry, dict) or entry.keys() != {*_FIELDS, *stated}:
            raise damaged(path, "a step lacks a field, or has one too many")
        if not all(isinstance(entry[n], kind) for n, kind in _FIELDS.items()):
            raise damaged(path, "a step has a field of another kind")
        model = home_of(entry["estimator"]) is not None
        if not model and entry["estimator"] not in PUBLIC:
            raise damaged(path, f"a step is of no known class: {entry['estimator']!r}")
        if bool(stated) != (model and not private):
            raise damaged(path, "a step has a privacy statement, or lacks its own")
        names = document["class_names"] if number == last else None
        made = {"class_names": names, **entry}
        saved = (checked if model else _checked_public)(path, made, own)
        found[entry["name"]] = saved
    if arrays or len(found) <= last:
        raise damaged(path, "its arrays or names are not those of its steps")
    return found


def made_pipeline(
    path: PathLike, document: dict[str, Any], steps: Mapping[str, Any]
) -> Any:
    """Return a pipeline of fitted steps, with its statement, or with that of its step.

    ModelFileError if ``save`` cannot have written it.
    """
    whole, private = read_statement(path, document), document["estimator"] == PIPELINE
    given = {
        name: type(step)(**step.get_params(deep=False)) if private else step
        for name, step in steps.items()
    }
    home = PIPELINES[document["estimator"]]
    made = getattr(import_module(home), document["estimator"])
    params = read_params(path, document["params"])
    if params.keys() & NOT_WRITTEN:  # a folder for private rows among them
        raise damaged(path, "the parameters do not fit the pipeline")
    try:
        pipeline = made(list(given.items()), **params)
    except (TypeError, ValueError) as error:
        raise damaged(path, "the parameters do not fit the pipeline") from error
    parts = [step for step in steps.values() if is_ours(step)]
    if private:
        names = read_arrays(path, document["arrays"])
        pipeline.steps_, pipeline.privacy_ = list(steps.items()), whole
        for key, value in {**document["fitted"], _NAMES: names.get(_NAMES)}.items():
            if value is not None:
                setattr(pipeline, key, value)
        *_, last = steps.values()
        if hasattr(last, "classes_"):
            pipeline.classes_ = last.classes_
        for step in parts:
            step.privacy_ = whole
    else:
        stated = [entry for entry in document["steps"] if "privacy" in entry]
        if [read_statement(path, entry) for entry in stated] != [whole]:
            raise damaged(path, "its statement is not that of its step")
        parts[0].privacy_ = whole
    return pipeline


def made_public(path: PathLike, saved: SavedModel) -> Any:
    """Return a public step, fitted as ever: to a row of zeros, or not at all."""
    try:
        step = getattr(import_module(saved.home), saved.name)(**saved.params)
        if saved.name == HASHING:
            if getattr(step, "input", "content") == "filename":
                raise ValueError("texts must be texts.")
            step.fit([])
        elif saved.name != COLUMNS:
            step.fit(np.zeros((1, saved.fitted.get(_COUNT, 1))))
    except (ArithmeticError, AttributeError, TypeError, ValueError) as error:
        raise damaged(path, "the parameters do not fit the estimator") from error
    for key, value in {**saved.fitted, **saved.arrays}.items():
        setattr(step, key, value)
    return step


def _written_public(name: str, step: Any) -> Written:
    """Return what is written of a public step; TypeError if it cannot be saved."""
    from sklearn.utils.validation import check_is_fitted

    if not is_from(PUBLIC.get(type(step).__name__), step):
        raise TypeError(
            f"step {name!r} must be of privfeat or one of {', '.join(PUBLIC)} to be "
            f"saved, got {type(step).__name__}. Make what it makes before the pipeline."
        )
    left_out: frozenset[str] = frozenset()
    if type(step).__name__ == HASHING:
        if step.dtype is not np.float64 or getattr(step, "input", "") == "filename":
            raise TypeError(
                f"step {name!r} must hash texts, not files, to numbers of float64 to "
                "be saved. Leave dtype and input as they are."
            )
        left_out = frozenset({"dtype"})
    check_is_fitted(step)
    columns = _columns_of(step)
    params = {"params": written_params(step, left_out)}
    return Written({**params, **columns.entry}, columns.arrays)


def _columns_of(estimator: Any) -> Written:
    """Return the number and the names of the columns that it was fitted to."""
    has = [name for name in (_COUNT, _NAMES) if hasattr(estimator, name)]
    counts = {_COUNT: int(estimator.n_features_in_)} if _COUNT in has else {}
    names = {_NAMES: np.asarray(estimator.feature_names_in_)} if _NAMES in has else {}
    return Written({"fitted": counts}, names)


def _checked_public(
    path: PathLike, entry: dict[str, Any], arrays: Arrays
) -> SavedModel:
    """Return a public step that was read; raise an error if it was damaged."""
    kind, fitted = entry["estimator"], dict(entry["fitted"])
    if not (arrays.keys() <= {_NAMES} and fitted.keys() <= {_COUNT}):
        raise damaged(path, "the fitted attributes are not those of a step")
    if not all(type(value) is int and 0 < value < 2**20 for value in fitted.values()):
        raise damaged(path, "its counts are no whole numbers")
    check_values(path, None, arrays, {})
    params = read_params(path, entry["params"])
    return SavedModel(kind, PUBLIC[kind], entry, arrays, {}, fitted, params)
