"""From a fitted estimator to the files of its folder."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from privfeat._checks import check_class_names
from privfeat._encoding import as_plain
from privfeat._version import __version__
from privfeat.data.origin import made_by
from privfeat.persistence.model_checks import as_table
from privfeat.persistence.model_folder import DOCUMENT, PathLike, write_model
from privfeat.persistence.pipelines import NOT_WRITTEN, is_pipeline, written_pipeline
from privfeat.persistence.saved_models import known_names
from privfeat.persistence.table_checks import check_table
from privfeat.persistence.written import (
    Written,
    as_text,
    described,
    is_ours,
    written_model,
    written_params,
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
    """Write a fitted estimator, or a pipeline, to the folder ``path``.

    Parameters
    ----------
    estimator : an estimator of privfeat, or Pipeline
        Fitted; not a subclass. Steps of a `PrivatePipeline`, or of a ``Pipeline`` of
        scikit-learn with one statement, are of privfeat, or ``Binarizer``,
        ``Normalizer`` or ``PolynomialFeatures``.
    path : str or path-like
        The folder; made if it is not there. A reader finds the earlier model or this
        one, never a part of either.
    overwrite : bool, default=False
        Whether to replace a model that the folder already holds. It cannot be fitted
        again without spending its budget again.
    class_names : sequence of str, optional
        Public names of ``estimator.classes_``, in that order. Of an estimator that was
        loaded, this and the two that follow are by default what it was saved with.
    features : mapping, optional
        How the features were made, `FeatureFile.origin`: public. ``privfeat predict``
        compares it with the file that it is given.
    table : mapping, optional
        What is publicly known of the table whose columns became the features:
        ``"columns"``, of `privfeat.preprocessing.PublicColumns`, those of the target
        included, and ``"target"``, the name of the column of the classes, or None. They
        must make the features of the fit: only ``missing`` and ``unseen`` may be others
        than those of a pipeline, neutral or a constant. A pipeline that begins with
        `PublicColumns` says the columns by itself, but no target, without which
        ``privfeat evaluate`` cannot measure it. With it ``privfeat predict`` reads a
        table, and so does Python::

            made = load_table("model")["columns"].items()
            columns = {name: said for name, said in made if name != "diagnosis"}
            make_pipeline(PublicColumns(columns), load("model")).predict(frame)

    Raises
    ------
    TypeError
        If ``estimator``, or a step, is of another class, or holds a parameter that has
        no safe written form, or ``class_names`` are a mapping, a set or a Series.
    ValueError
        If the number of ``class_names`` is not that of the classes, one is no UTF-8,
        ``table`` makes other features than those of the fit, or not exactly one step of
        a pipeline has a statement.
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
    pipeline = is_pipeline(estimator)
    if not (pipeline or is_ours(estimator)):
        raise TypeError(
            f"estimator must be one of {known_names()}, or a Pipeline of steps of "
            f"privfeat, got {type(estimator).__name__}. Save the estimator inside, and "
            "threshold_ of a ConformalClassifier beside it, or keep a pickle of your "
            "own at home. privfeat.export.export_onnx has TemperatureScaling as well."
        )
    written: Written = (written_pipeline if pipeline else written_model)(estimator)
    known = described(estimator)
    if known is not None:
        class_names = known.class_names if class_names is None else class_names
        features, table = features or known.features, table or known.table
    table = table or written.table
    if table is not None:
        check_table(estimator, written.table, as_table(table))
        written = written.of_table()
    if class_names is not None:
        check_class_names(class_names, len(estimator.classes_))
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"path must be a folder, got the file {str(path)!r}.")
    if (folder / DOCUMENT).exists() and not overwrite:
        raise FileExistsError(
            f"path must not hold a model, got {str(path)!r}. Pass overwrite=True to "
            "replace it."
        )
    document = {
        "privfeat_version": __version__,
        "estimator": type(estimator).__name__,
        **written.entry,
        **_named(class_names, features, table),
    }
    objects = [n for n, array in written.arrays.items() if array.dtype.hasobject]
    arrays = written.arrays | {n: as_plain(n, written.arrays[n]) for n in objects}
    texts = [name for name in objects if arrays[name].dtype.kind == "U"]
    write_model(folder, document, arrays, texts)


def written_before(
    estimator: Any,
    class_names: Sequence[str] | None,
    features: Mapping[str, Any] | None = None,
    table: Mapping[str, Any] | None = None,
) -> None:
    """Check the parameters and names that `save` writes, of an estimator not fitted.

    And those of the steps of a pipeline, but not whether their classes can be saved.
    Commands call it before they fit: what cannot be saved must cost nothing. TypeError
    or ValueError as for `save`.
    """
    for _, step in getattr(estimator, "steps", ()):
        written_params(step)
    apart = NOT_WRITTEN if hasattr(estimator, "steps") else frozenset()
    written_params(estimator, apart)
    _named(class_names, features, table)


def _named(
    class_names: Sequence[str] | None,
    features: Mapping[str, Any] | None,
    table: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return names of classes, features and columns as JSON text can hold them."""
    names = None if class_names is None else check_class_names(class_names)
    return as_text(
        {
            "class_names": names,
            **({"features": made} if (made := made_by(features or {})) else {}),
            **({} if table is None else {"table": as_table(table)}),
        }
    )
