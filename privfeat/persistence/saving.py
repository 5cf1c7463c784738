"""From a fitted estimator to the files of its folder."""

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from privfeat._encoding import as_strings, encode
from privfeat._types import STAYS_AT_HOME
from privfeat._version import __version__
from privfeat.data.origin import made_by
from privfeat.persistence.model_checks import as_table
from privfeat.persistence.model_folder import (
    DOCUMENT,
    Arrays,
    PathLike,
    write_model,
)
from privfeat.persistence.pipelines import written_pipeline
from privfeat.persistence.saved_models import (
    OPTIONAL,
    PARAMETER,
    PIPELINE,
    fitted_of,
    home_of,
    known_names,
)


def save(
    estimator: Any,
    path: PathLike,
    *,
    overwrite: bool = False,
    class_names: Sequence[str] | None = None,
    features: Mapping[str, Any] | None = None,
    table: Mapping[str, Any] | None = None,
) -> None:
    """Write a fitted estimator to the folder ``path``.

    Parameters
    ----------
    estimator : an estimator of privfeat
        Fitted; not a subclass. Of a `PrivatePipeline` the steps are of privfeat, or
        ``Binarizer``, ``Normalizer`` or ``PolynomialFeatures``.
    path : str or path-like
        The folder; made if it is not there. A reader finds the earlier model or this
        one, never a part of either.
    overwrite : bool, default=False
        Whether to replace a model that the folder already holds. It cannot be fitted
        again without spending its budget again.
    class_names : sequence of str, optional
        Public names of ``estimator.classes_``, in that order.
    features : mapping, optional
        How the features were made, `FeatureFile.origin`: public. ``privfeat predict``
        compares it with the file that it is given.
    table : mapping, optional
        What is publicly known of the table whose columns became the features:
        ``"columns"``, of `privfeat.preprocessing.PublicColumns`, and ``"target"``, the
        name of the column of the classes, or None. With it ``privfeat predict`` reads
        a table, and so does Python::

            made = load_table("model")["columns"].items()
            columns = {name: said for name, said in made if name != "diagnosis"}
            make_pipeline(PublicColumns(columns), load("model")).predict(frame)

    Raises
    ------
    TypeError
        If ``estimator`` is of another class, or holds a parameter that has no safe
        written form.
    ValueError
        If the number of ``class_names`` is not that of the classes, or one is no UTF-8.
    FileExistsError
        If ``path`` is a file, or holds a model and ``overwrite`` is False.
    sklearn.exceptions.NotFittedError
        If ``estimator`` is not fitted.

    Notes
    -----
    ``random_state`` is never written: with the seed of a fit, anyone can subtract its
    noise. Nor is ``ledger``, which may be found by a password, nor are the paths
    ``checkpoint_dir`` and ``weights``, nor ``public``, which may be large. A loaded
    estimator has None for them: give it its ledger again before it is fitted again.

    Examples
    --------
    >>> save(clf, "model")  # doctest: +SKIP
    """
    from sklearn.utils.validation import check_is_fitted

    name = type(estimator).__name__
    if not is_ours(estimator):
        raise TypeError(
            f"estimator must be one of {known_names()}, got {name}. Pickle another "
            "class."
        )
    check_is_fitted(estimator)
    if class_names is not None and len(class_names) != len(estimator.classes_):
        raise ValueError(
            f"class_names must have {len(estimator.classes_)} entries, "
            f"got {len(class_names)}."
        )
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"path must be a folder, got the file {str(path)!r}.")
    if (folder / DOCUMENT).exists() and not overwrite:
        raise FileExistsError(
            f"path must not hold a model, got {str(path)!r}. Pass overwrite=True to "
            "replace it."
        )

    document, arrays, objects = (
        written_pipeline(estimator, written_before, fitted_parts)
        if name == PIPELINE
        else fitted_parts(estimator)
    )
    document |= {
        "privfeat_version": __version__,
        "estimator": name,
        **written_before(estimator, class_names, features, table),
        "privacy": json.loads(estimator.privacy_.to_json()),
    }
    write_model(folder, document, arrays, objects)


def fitted_parts(estimator: Any) -> tuple[dict[str, Any], Arrays, list[str]]:
    """Return the fitted numbers of an estimator, its arrays, and those of objects."""
    array_names, count_names = (
        [n for n in names if n not in OPTIONAL or hasattr(estimator, n)]
        for names in fitted_of(type(estimator).__name__)
    )
    arrays = {n: np.asarray(getattr(estimator, n)) for n in array_names}
    objects = [n for n in array_names if arrays[n].dtype.hasobject]
    arrays |= {n: as_strings(n, arrays[n]) for n in objects}
    for leaf, array in getattr(estimator, "parameters_", {}).items():
        arrays[PARAMETER + leaf] = array
    counts = {n: int(getattr(estimator, n)) for n in count_names}
    return {"fitted": counts}, arrays, objects


def written_before(
    estimator: Any,
    class_names: Sequence[str] | None,
    features: Mapping[str, Any] | None = None,
    table: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return what `save` writes of an estimator that is not fitted yet.

    Commands call it before they fit: what cannot be saved must cost nothing.

    Raises
    ------
    TypeError, ValueError
        As for `save`.
    """
    params = estimator.get_params(deep=False)
    params |= {name: None for name in STAYS_AT_HOME if name in params}
    params.pop("steps", None)  # of a pipeline: each is written by itself
    if hasattr(params.get("prior"), "coef_"):
        from privfeat.linear.parameters.prior import as_array

        params["prior"] = as_array(params["prior"], estimator)
    names = None if class_names is None else [str(name) for name in class_names]
    written = {
        "params": {key: encode(key, value) for key, value in params.items()},
        "class_names": names,
        **({"features": made} if (made := made_by(features or {})) else {}),
        **({} if table is None else {"table": as_table(table)}),
    }
    try:
        json.dumps(written, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError(
            "names of classes and parameters must be text in UTF-8, got one that is "
            "not. Rename it: classes are named after folders."
        ) from None
    return written


def is_ours(estimator: Any) -> bool:
    """Return whether this is an estimator of privfeat, and no subclass of one."""
    name = type(estimator).__name__
    home = home_of(name)
    return home is not None and type(estimator) is getattr(import_module(home), name)
