"""Pipelines on disk: one model folder, with what each step is and what it learned.

``model.json`` lists the steps in their order; arrays of step 2 are named ``2/...``. So
a pipeline is written and replaced in one move, as a model is, and is read by the same
checks. A transformer that may be a step is named in ``TRANSFORMERS``, with all that a
file holds of it.
"""

import json
from importlib import import_module
from typing import Any

import numpy as np

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
    SavedModel,
    checked,
    home_of,
    known_names,
    read_params,
    read_statement,
)
from privfeat.persistence.written import (
    Written,
    is_ours,
    written_model,
    written_params,
)

# Pipelines: where each is imported from, and whether it has a statement as a whole.
# One that has none is covered by that of its one private step.
PIPELINES = {"Pipeline": ("sklearn.pipeline", False)}
# Transformers: where each is imported from, its fitted arrays and its fitted whole
# numbers. What a step does without is left out. One that releases something has
# ``privacy_``, which is written as well.
TRANSFORMERS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    COLUMNS: ("privfeat.preprocessing", ("feature_names_in_",), ("n_features_in_",)),
}
# What a pipeline has beside its steps for its own work, a folder for example.
_NOT_WRITTEN = frozenset({"steps", "memory", "verbose", "transform_input"})
_FIELDS = {"name": str, "estimator": str, "params": dict, "fitted": dict}


def is_pipeline(estimator: Any) -> bool:
    """Return whether this is a pipeline that may be saved, and no subclass of one."""
    name = type(estimator).__name__
    home, _ = PIPELINES.get(name, ("", False))
    return bool(home) and type(estimator) is getattr(import_module(home), name)


def written_steps(pipeline: Any) -> Written:
    """Return what is written of a fitted pipeline.

    Raises
    ------
    TypeError
        If a step is not of privfeat.
    ValueError
        If not exactly one step has a statement, and the pipeline has none of its own.
    """
    entries: list[dict[str, Any]] = []
    arrays: Arrays = {}
    for number, (name, step) in enumerate(pipeline.steps):
        written = written_model(step) if is_ours(step) else _written_step(name, step)
        kind = {"name": name, "estimator": type(step).__name__}
        entries.append({**kind, **written.entry})
        arrays |= {f"{number}/{key}": array for key, array in written.arrays.items()}
    stated = [entry["privacy"] for entry in entries if "privacy" in entry]
    if PIPELINES[type(pipeline).__name__][1]:
        whole = json.loads(pipeline.privacy_.to_json())
    elif len(stated) == 1:
        (whole,) = stated
    else:
        raise ValueError(
            "a Pipeline must have one step with a privacy statement to be saved, got "
            f"{len(stated)}: no statement covers it as a whole."
        )
    entry = {
        "params": written_params(pipeline, _NOT_WRITTEN),
        "fitted": {},
        "steps": entries,
        "privacy": whole,
    }
    first = pipeline.steps[0][1]
    reads_tables = type(first).__name__ == COLUMNS
    table = {"columns": first.columns, "target": None} if reads_tables else None
    return Written(entry, arrays, table)


def _written_step(name: str, step: Any) -> Written:
    from sklearn.utils.validation import check_is_fitted

    kind = type(step).__name__
    home, array_names, count_names = TRANSFORMERS.get(kind, ("", (), ()))
    if not home or type(step) is not getattr(import_module(home), kind):
        raise TypeError(
            f"steps of a pipeline must be of {', '.join(TRANSFORMERS)}, "
            f"{known_names()} to be saved, got {kind} as {name!r}: no statement covers "
            "what it learned. Pickle the pipeline, and keep it at home."
        )
    check_is_fitted(step)
    counts = {n: int(getattr(step, n)) for n in count_names if hasattr(step, n)}
    entry = {"params": written_params(step), "fitted": counts}
    if (statement := getattr(step, "privacy_", None)) is not None:
        entry["privacy"] = json.loads(statement.to_json())
    arrays = {n: np.asarray(getattr(step, n)) for n in array_names if hasattr(step, n)}
    return Written(entry, arrays)


def read_model(path: PathLike) -> SavedModel:
    """Return what ``save`` wrote to a folder, of a pipeline its last step.

    Its statement is not read. What ``save`` cannot have written is a ModelFileError.
    """
    return list(read_steps(path).values())[-1]


def read_steps(path: PathLike) -> dict[str, SavedModel]:
    """Return the steps of a saved pipeline by their names; else the model alone."""
    document = read_document(path)
    arrays = read_arrays(path, document["arrays"])
    if "steps" not in document:
        return {"": checked(path, document, arrays)}
    entries = document["steps"]
    if document["estimator"] not in PIPELINES or document["fitted"] or not entries:
        raise damaged(path, "its steps are not those of a pipeline")
    last, found = len(entries) - 1, {}
    for number, entry in enumerate(entries):
        prefix = f"{number}/"
        own = {
            key.removeprefix(prefix): arrays.pop(key)
            for key in list(arrays)
            if key.startswith(prefix)
        }
        known = isinstance(entry, dict) and entry.keys() - {"privacy"} == _FIELDS.keys()
        if not known or not all(isinstance(entry[n], t) for n, t in _FIELDS.items()):
            raise damaged(path, "a step lacks a field, or has one too many")
        names = document["class_names"] if number == last else None
        made = {"class_names": names, **entry}
        is_model = home_of(entry["estimator"]) is not None
        if is_model and "privacy" not in entry:
            raise damaged(path, "it holds no privacy statement")
        saved = (checked if is_model else _checked_step)(path, made, own)
        found[entry["name"]] = saved
    if arrays or len(found) <= last:
        raise damaged(path, "its arrays or names are not those of its steps")
    return found


def _checked_step(path: PathLike, entry: dict[str, Any], arrays: Arrays) -> SavedModel:
    kind, fitted = entry["estimator"], dict(entry["fitted"])
    home, array_names, count_names = TRANSFORMERS.get(kind, ("", (), ()))
    if not home:
        raise damaged(path, f"a step is of no known class: {kind!r}")
    if not ({*arrays} <= {*array_names} and {*fitted} <= {*count_names}):
        raise damaged(path, "the fitted attributes are not those of a step")
    if not all(type(value) is int and value >= 0 for value in fitted.values()):
        raise damaged(path, "its counts are no whole numbers")
    check_values(path, None, arrays, {})
    params = read_params(path, entry["params"])
    return SavedModel(kind, home, entry, arrays, {}, fitted, params)


def made_pipeline(path: PathLike, document: dict[str, Any], steps: Any) -> Any:
    """Return a pipeline of steps that are made, each with its statement."""
    whole = read_statement(path, document)
    stated = [entry for entry in document["steps"] if "privacy" in entry]
    for entry in stated:
        steps[entry["name"]].privacy_ = read_statement(path, entry)
    name = document["estimator"]
    home, has_statement = PIPELINES[name]
    cls, params = getattr(import_module(home), name), document["params"]
    try:
        pipeline = cls(list(steps.items()), **read_params(path, params))
    except TypeError as error:
        raise damaged(path, "the parameters do not fit the pipeline") from error
    kept = [steps[entry["name"]].privacy_ for entry in stated]
    if has_statement:
        # those at another delta are not compared
        covered = all(
            step.delta != whole.delta or step.epsilon <= whole.epsilon for step in kept
        )
        pipeline.privacy_ = whole
    else:
        covered = kept == [whole]
    if not covered:
        raise damaged(path, "its statement is not that of its steps")
    return pipeline
