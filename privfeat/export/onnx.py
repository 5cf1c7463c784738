"""Models as ONNX: one file that predicts without privfeat, and without Python."""

import json
import os
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from privfeat._checks import check_choice, require
from privfeat._files import write_atomically
from privfeat.export.graph import DOUBLE, Graph
from privfeat.export.parts import Parts, parts_of, predictor_of
from privfeat.persistence.saved_models import COLUMNS

_DTYPES = ("float64", "float32", "uint8")


def export_onnx(
    model: Any,
    path: str | os.PathLike[str],
    *,
    class_names: Sequence[str] | None = None,
    dtype: Literal["float32", "float64", "uint8"] | None = None,
) -> None:
    """Write a fitted model as an ONNX graph, which holds all that predicts.

    Parameters
    ----------
    model : fitted estimator, Pipeline or TemperatureScaling
        A linear estimator of privfeat, or a network that has a name; a ``Pipeline`` or
        `PrivatePipeline` of `PublicColumns`, `DPStandardScaler`, `DPPCA` and a linear
        one; or `TemperatureScaling` of any.
    path : str or path-like
        The file, replaced if it is there.
    class_names : sequence of str, optional
        Public names of ``classes_``, for the metadata. By default those that a model
        from `load` was saved with.
    dtype : {"float64", "float32", "uint8"}, optional
        Of the input ``X``. Of a linear model float64, the default, or float32; the
        graph computes in float64 in either case. Of a network uint8, the default for
        images, which become numbers as in training, or float32, the default for rows,
        which is taken as it is.

    Raises
    ------
    TypeError
        If ``model`` or a step is of another class, a network has no name, or classes
        are such that ONNX has no type for them.
    ValueError
        If a column is named as an output, ``class_names`` are not one for each class,
        a network votes over views, or does not take the ``dtype``.
    ImportError
        If onnx is missing: ``pip install 'privfeat[onnx]'``.

    Warns
    -----
    PrivacyWarning
        If the privacy statement has no finite epsilon, or noise of a seed.

    Notes
    -----
    **Inputs.** ``X`` of shape (n_samples, n_features). With `PublicColumns` each column
    is an input of shape (n_samples, 1) by its name: categories are texts, as they are
    declared; all others are float64, with NaN for what is missing, 0 and 1 for
    booleans, and seconds since 1970 in UTC for dates.

    **Outputs.** ``label``, ``probabilities`` and ``scores``, which are ``predict``,
    ``predict_proba`` and ``decision_function`` of the model; ``prediction`` of a
    regressor. Rows are scaled and centred in the graph, and zero rows stay zero. Those
    of networks agree with JAX as float32 does, to about six digits.

    **Refused rows.** ``predict`` raises for a row with NaN or infinity, and for values
    that their columns do not allow. A graph cannot raise, so it looks up the result of
    such a row at a place that does not exist: onnxruntime fails on a CPU, and gives no
    result for any row of that call. Where a runtime does not check places, the numbers
    of that row are NaN, and its ``label`` means nothing.

    **What leaves.** Released numbers, and as metadata the privacy statement, the
    version, names of classes and of the estimator: no parameter, seed, path or count.

    Examples
    --------
    >>> export_onnx(clf, "model.onnx")  # doctest: +SKIP
    """
    require("export_onnx", "onnx", extra="onnx")
    if dtype is not None:
        check_choice("dtype", dtype, _DTYPES)
    parts = parts_of(model)
    fitted = parts.model
    kind = _dtype_of(fitted, dtype)
    graph, metadata = Graph(), parts.metadata(class_names)
    if hasattr(fitted, "parameters_"):
        if parts.steps:
            raise TypeError(
                "a network must be the only step to be exported to ONNX, got "
                f"{', '.join(parts.names)}. Predict with privfeat.load."
            )
        # imported where onnx is there
        from privfeat.export.networks import add_network

        add_network(graph, kind, fitted, parts.temperature)
    else:
        from privfeat.export.linear import add_linear

        rows, refused = _add_rows(graph, parts, kind, metadata)
        add_linear(graph, rows, refused, predictor_of(fitted), parts.temperature)
    about = f"A model trained with differential privacy: {metadata['estimator']}."
    made = graph.model(about, metadata)
    parts.warn_of_exposed()
    write_atomically(path, made.SerializeToString())


def _add_rows(
    graph: Graph, parts: Parts, dtype: str, metadata: dict[str, str]
) -> tuple[str, str]:
    """Return the rows that the last step gets, and which rows are refused."""
    from privfeat.export.columns import add_columns
    from privfeat.export.linear import all_finite
    from privfeat.preprocessing import DPPCA, DPStandardScaler

    steps = list(parts.steps)
    has_columns = bool(steps) and type(steps[0]).__name__ == COLUMNS
    known = (DPStandardScaler, DPPCA)
    unknown = [step for step in steps[has_columns:] if type(step) not in known]
    if unknown:
        raise TypeError(
            "steps before the last must be "
            f"{', '.join([COLUMNS, *(one.__name__ for one in known)])} to be "
            f"exported to ONNX, got {type(unknown[0]).__name__}. Predict with "
            "privfeat.load or `privfeat predict`, or fit without it."
        )
    if has_columns:
        from privfeat.preprocessing import plain_columns
        from privfeat.preprocessing.declaration import parse_columns

        declared = steps.pop(0).columns
        metadata["columns"] = json.dumps(plain_columns(declared))
        rows, refused = add_columns(graph, parse_columns(declared))
    else:
        first = steps[0] if steps else parts.model
        rows = graph.take("X", dtype, int(first.n_features_in_))
        if dtype == "float32":
            rows = graph.op("Cast", rows, to=DOUBLE)
        refused = graph.op("Not", all_finite(graph, rows))
    for step in steps:  # as its ``transform`` does in NumPy
        if type(step) is DPStandardScaler:
            low, high = step.bounds_of(len(step.mean_))
            cut = graph.op("Min", graph.op("Max", rows, low[None]), high[None])
            rows = graph.op("Div", graph.op("Sub", cut, step.mean_), step.scale_)
        else:
            shifted = graph.op("Sub", rows, step.mean_)
            components = np.ascontiguousarray(step.components_.T)
            rows = graph.op("MatMul", shifted, components)
    return rows, refused


def _dtype_of(fitted: Any, given: str | None) -> str:
    """Return the type of the records that a graph takes."""
    if not hasattr(fitted, "parameters_"):
        if given == "uint8":
            raise ValueError("dtype must be float64 or float32 for a linear model.")
        return given or "float64"
    if given == "float64":
        raise ValueError("dtype must be uint8 or float32 for a network, got float64.")
    if fitted.n_votes != 1 and fitted.augmentation != "none":
        raise ValueError(
            f"n_votes must be 1 for a graph, got {fitted.n_votes!r}: the views of a "
            "record are drawn by JAX. Pass set_params(n_votes=1)."
        )
    return given or ("uint8" if len(fitted.input_shape_) > 1 else "float32")
