"""Models as safetensors: arrays by their names, which many programs read."""

import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from privfeat._checks import require
from privfeat._files import write_atomically
from privfeat.export.parts import parts_of, predictor_of
from privfeat.persistence.saved_models import COLUMNS
from privfeat.persistence.written import written_model


def export_safetensors(
    model: Any,
    path: str | os.PathLike[str],
    *,
    class_names: Sequence[str] | None = None,
) -> None:
    """Write the arrays of a fitted model, and what predictions need beside them.

    Parameters
    ----------
    model : fitted estimator
        Of privfeat: linear, or a network that has a name.
    path : str or path-like
        The file, replaced if it is there.
    class_names : sequence of str, optional
        Public names of ``classes_``, for the metadata. By default those that a model
        from `load` was saved with.

    Raises
    ------
    TypeError
        If ``model`` is of another class: a pipeline is exported by `export_onnx`, or
        saved. Or if it is a network of your own, whose class is not in the file.
    ValueError
        If ``class_names`` are not one for each class.
    ImportError
        If safetensors is missing: ``pip install 'privfeat[safetensors]'``.

    Warns
    -----
    PrivacyWarning
        If the privacy statement has no finite epsilon, or noise of a seed.

    Notes
    -----
    **Arrays.** Fitted attributes by their names; the parameters of a network as
    ``parameters_/...``, with ``input_shape_`` and ``pixel_scale_``.

    **Metadata.** ``privacy``, the statement as JSON; ``prediction``, what else scores
    and probabilities depend on; ``classes``, in the order of scores; names of classes
    and columns, the estimator and the version. Nothing is pickled, and no seed, path or
    count of records is in the file.

    Examples
    --------
    >>> export_safetensors(clf, "model.safetensors")  # doctest: +SKIP
    """
    require("export_safetensors", "safetensors", extra="safetensors")
    from safetensors.numpy import save

    parts = parts_of(model)
    if len(parts.names) > 1:
        raise TypeError(
            "model must be one estimator to be exported as arrays, got "
            f"{', '.join(parts.names)}. A file of arrays has no place for other steps: "
            f"predict with privfeat.load or `privfeat predict`, or, of {COLUMNS} and "
            "a linear model, use export_onnx."
        )
    metadata = parts.metadata(class_names)
    metadata["prediction"] = json.dumps(_needed(model))
    arrays = written_model(model).arrays
    for name in ("classes_", "feature_names_in_"):
        if name in arrays:  # which may be texts
            metadata[name.rstrip("_")] = json.dumps(arrays.pop(name).tolist())
    content = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    parts.warn_of_exposed()
    write_atomically(path, save(content, metadata))


def _needed(model: Any) -> dict[str, Any]:
    """Return what predictions depend on beside the arrays."""
    if "parameters_" in vars(model):
        params = model.get_params(deep=False)
        return {
            name: params[name]
            for name in ("model", "augmentation", "n_votes", "vote")
            if name in params
        }
    linear = predictor_of(model)
    if linear.classes is None:
        return {"row_scaling": linear.row_scaling, "bounds": [*linear.bounds]}
    return {
        "row_scaling": linear.row_scaling,
        "loss": linear.loss,
        "multilabel": bool(linear.multilabel),
        "negative_weight": linear.negative_weight,
    }
