"""An evaluation on disk: ``evaluation.json``, beside the model that it is of.

It holds the figures, which follow from releases, and the privacy statement for the test
records. Reading checks all of it: a checksum, every field, type and shape, that the
statement is what its releases cost, and that the model is still the one that was
evaluated. Checksums show damage, not forgery.
"""

import json
import math
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from privfeat._files import write_atomically
from privfeat._version import __version__
from privfeat.metrics.classification import ClassifierEvaluation
from privfeat.metrics.curves import ReliabilityCurve, RocCurve
from privfeat.metrics.intervals import Estimate
from privfeat.metrics.measuring import Evaluation
from privfeat.metrics.regression import RegressorEvaluation
from privfeat.persistence.model_folder import (
    EVALUATION,
    FORMAT_VERSION,
    ModelFileError,
    PathLike,
    checked_json,
    damaged,
    digest,
    read_document,
)
from privfeat.persistence.saved_models import read_statement

FORMAT = "privfeat-evaluation"
_KINDS: dict[str, type[Evaluation]] = {
    "classifier": ClassifierEvaluation,
    "regressor": RegressorEvaluation,
}
_FIELDS = {
    *("format", "format_version", "privfeat_version", "model_sha256", "test"),
    *("kind", "figures", "privacy", "sha256"),
}


def save_evaluation(
    evaluation: Evaluation, model: PathLike, *, test: str, checksum: str | None = None
) -> Path:
    """Write an evaluation into the folder of its model, and return the file.

    Parameters
    ----------
    evaluation : ClassifierEvaluation or RegressorEvaluation
    model : str or path-like
        The folder that ``privfeat.save`` wrote.
    test : str
        What the test records are called: public.
    checksum : str, optional
        The ``sha256`` in the folder's ``model.json`` when the model was loaded, so that
        the figures are not written beside a model that took its place since.

    Raises
    ------
    ModelFileError
        If there is no model in the folder, or another than the one of ``checksum``.
    """
    found = read_document(model)["sha256"]
    if found != (checksum or found):
        raise ModelFileError(
            f"{str(model)!r} must hold the model that was evaluated, got another."
        )
    kind = next(k for k, cls in _KINDS.items() if isinstance(evaluation, cls))
    document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "privfeat_version": __version__,
        "model_sha256": found,
        "test": test,
        "kind": kind,
        **evaluation_json(evaluation),
    }
    document["sha256"] = digest(document)
    text = json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False)
    path = Path(model) / EVALUATION
    write_atomically(path, f"{text}\n".encode())
    return path


def evaluation_json(evaluation: Evaluation) -> dict[str, Any]:
    """Return the figures and the statement as JSON has them."""
    return {
        "figures": {
            field.name: _plain(getattr(evaluation, field.name))
            for field in fields(evaluation)
            if field.name != "privacy"
        },
        "privacy": json.loads(evaluation.privacy.to_json()),
    }


def load_evaluation(model: PathLike) -> tuple[Evaluation, str] | None:
    """Return the evaluation of a saved model, and of what; None if there is none.

    Raises
    ------
    ModelFileError
        If it is damaged, of a newer format, or of another model than is there now.
    """
    path = Path(model) / EVALUATION
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    document = checked_json(path, EVALUATION, content, FORMAT)
    if document.keys() != _FIELDS:
        raise damaged(path, "it has other fields")
    if document["model_sha256"] != read_document(model)["sha256"]:
        raise ModelFileError(
            f"{str(path)!r} is of another model than is there now. Evaluate this one, "
            "or remove the file."
        )
    try:
        evaluation = _evaluation(
            document["kind"], document["figures"], read_statement(path, document)
        )
        if not isinstance(document["test"], str):
            raise TypeError("test must be a string.")
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise damaged(path, "it has fields of another type or shape") from error
    return evaluation, document["test"]


def _plain(value: Any) -> Any:
    """Return a figure as JSON has it; a number that is not finite becomes null."""
    if isinstance(value, Estimate | RocCurve | ReliabilityCurve):
        return {k: _plain(part) for k, part in vars(value).items()}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _evaluation(kind: str, figures: dict[str, Any], privacy: Any) -> Evaluation:
    """Return an evaluation of checked parts; errors are those of Python."""
    cls = _KINDS[kind]
    if figures.keys() != {field.name for field in fields(cls)} - {"privacy"}:
        raise ValueError("fields must be those of the class.")
    found: dict[str, Any] = {"privacy": privacy}
    found["confidence"] = float(_numbers(figures["confidence"], ()))
    n_classes = 0
    if cls is ClassifierEvaluation:
        classes = np.asarray(figures["classes"])
        if classes.ndim != 1 or classes.dtype.kind not in "biufU" or len(classes) < 2:
            raise ValueError("classes must be labels.")
        found["classes"], n_classes = classes, len(classes)
    else:
        low, high = _numbers(figures["target_bounds"], (2,)).tolist()
        found["target_bounds"] = low, high
    shapes = {"recall": (n_classes,), "confusion": (n_classes, n_classes)}
    for name, value in figures.items():
        if name in found:
            continue
        if value is None and name in ("roc_auc", "roc", "ece", "reliability"):
            found[name] = None
        elif name == "roc":
            thresholds = _numbers(value["thresholds"], (len(value["thresholds"]),))
            rates = (
                _estimate(value[f"{which}_positive_rate"], thresholds.shape)
                for which in ("false", "true")
            )
            found[name] = RocCurve(thresholds, *rates)
        elif name == "reliability":
            shape = (len(value["confidence"]),)
            found[name] = ReliabilityCurve(
                _numbers(value["bin_edges"], (shape[0] + 1,)),
                _numbers(value["confidence"], shape),
                _estimate(value["accuracy"], shape),
            )
        else:
            found[name] = _estimate(value, shapes.get(name, ()))
    return cls(**found)


def _estimate(value: Any, shape: tuple[int, ...]) -> Estimate:
    """Return an estimate; null is an unknown value, or an end without bound."""
    if value.keys() != {"value", "low", "high"}:
        raise ValueError("an estimate must have a value and two ends.")
    parts = {name: _numbers(value[name], shape, null=True) for name in value}
    low = np.nan_to_num(parts["low"], nan=-np.inf)
    high = np.nan_to_num(parts["high"], nan=np.inf)
    if not np.all(low <= high):
        raise ValueError("low must be at most high.")
    ends = (parts["value"], low, high)
    return Estimate(*ends) if shape else Estimate(*map(float, ends))


def _numbers(value: Any, shape: tuple[int, ...], *, null: bool = False) -> Any:
    """Return numbers of this shape; null becomes NaN, where it may be."""
    given = np.array(value, dtype=object)
    flat = [math.nan if one is None and null else one for one in given.ravel().tolist()]
    if given.shape != shape or not all(type(one) in (int, float) for one in flat):
        raise ValueError("figures must be numbers, as many as there must be.")
    return np.array(flat, np.float64).reshape(shape)
