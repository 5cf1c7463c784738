"""Models as ONNX: one file that predicts without privfeat, and without Python."""

import json
import os
from collections.abc import Sequence
from typing import Any, Literal

from privfeat._checks import check_choice
from privfeat._extras import require
from privfeat._files import write_atomically
from privfeat.export.graph import DOUBLE, Graph
from privfeat.export.parts import parts_of, predictor_of
from privfeat.persistence.saved_models import COLUMNS

_NETWORK = (
    "networks must be exported by export_safetensors, got {name}: what makes ONNX of "
    "JAX, jax2onnx, needs an older orbax-checkpoint than their training does."
)


def export_onnx(
    model: Any,
    path: str | os.PathLike[str],
    *,
    class_names: Sequence[str] | None = None,
    dtype: Literal["float32", "float64"] = "float64",
) -> None:
    """Write a fitted linear model as an ONNX graph, which holds all that predicts.

    Parameters
    ----------
    model : fitted estimator, Pipeline or TemperatureScaling
        A linear estimator of privfeat; a ``Pipeline`` of `PublicColumns` and one; or
        `TemperatureScaling` of either.
    path : str or path-like
        The file, replaced if it is there.
    class_names : sequence of str, optional
        Public names of ``classes_``, for the metadata.
    dtype : {"float64", "float32"}, default="float64"
        Of the input ``X``. The graph computes in float64 in either case.

    Raises
    ------
    TypeError
        If ``model`` or a step is of another class, a network, or has classes that ONNX
        has no type for.
    ValueError
        If a column is named as an output, or ``class_names`` are not one for each
        class.
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
    regressor. Rows are scaled and centred in the graph, and zero rows stay zero.

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
    check_choice("dtype", dtype, ("float64", "float32"))
    parts = parts_of(model)
    fitted = parts.model
    if not hasattr(fitted, "coef_"):
        raise TypeError(_NETWORK.format(name=type(fitted).__name__))
    # imported where onnx is there
    from privfeat.export.columns import add_columns
    from privfeat.export.linear import add_linear

    graph, metadata = Graph(), parts.metadata(class_names)
    if not parts.steps:
        rows = graph.take("X", dtype, int(fitted.n_features_in_))
        if dtype == "float32":
            rows = graph.op("Cast", rows, to=DOUBLE)
        refused = graph.op("Less", [[1.0]], 0.0)
    elif [type(step).__name__ for step in parts.steps] == [COLUMNS]:
        from privfeat.preprocessing import plain_columns
        from privfeat.preprocessing.declaration import parse_columns

        declared = parts.steps[0].columns
        metadata["columns"] = json.dumps(plain_columns(declared))
        rows, refused = add_columns(graph, parse_columns(declared))
    else:
        raise TypeError(
            f"the step before the last must be {COLUMNS} to be exported to ONNX, and "
            f"there must be no other, got {', '.join(parts.names)}. Predict with "
            "privfeat.load or `privfeat predict`, or fit without the other steps (with "
            "--scale public)."
        )
    add_linear(graph, rows, refused, predictor_of(fitted), parts.temperature)
    about = f"A model trained with differential privacy: {metadata['estimator']}."
    made = graph.model(about, metadata)
    parts.warn_of_exposed()
    write_atomically(path, made.SerializeToString())
