"""From the files of a saved model to an estimator, or to a part of it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from privfeat.persistence.model_checks import as_table, check_network
from privfeat.persistence.model_folder import (
    ModelFileError,
    PathLike,
    damaged,
    read_document,
)
from privfeat.persistence.pipelines import (
    PUBLIC,
    made_pipeline,
    made_public,
    read_steps,
)
from privfeat.persistence.saved_models import (
    COLUMNS,
    SavedModel,
    predictor_of,
    read_statement,
)
from privfeat.persistence.written import describe

if TYPE_CHECKING:
    from privfeat.core.statement.privacy_statement import PrivacyStatement
    from privfeat.estimation.predictor import LinearPredictor


def load(path: PathLike) -> Any:
    """Return the fitted estimator, or pipeline, that ``save`` wrote to a folder.

    What was saved beside it, names of classes, features and columns, is its attribute
    ``described_``. A copy has it as well (`privfeat.analysis.rates.shifted_rates`), and
    `save` writes it again, until the estimator is fitted anew.

    Raises
    ------
    ModelFileError
        If the folder holds no model, or one that is damaged, of a newer format, or
        not written by ``save``.
    """
    document, steps = read_document(path), read_steps(path)
    if "steps" in document:
        parts = {name: _made(path, saved) for name, saved in steps.items()}
        estimator = made_pipeline(path, document, parts)
    else:
        estimator = _made(path, steps[""])
        estimator.privacy_ = read_statement(path, document)
    describe(estimator, document)
    return estimator


def _made(path: PathLike, saved: SavedModel) -> Any:
    """Return an estimator with all that was fitted but its statement."""
    from privfeat.estimation.fitting import keep_params

    if saved.name in PUBLIC:
        return made_public(path, saved)
    cls, network = getattr(import_module(saved.home), saved.name), saved.parameters
    try:
        estimator = cls(**saved.params)
    except (TypeError, ValueError) as error:
        raise damaged(path, "the parameters do not fit the estimator") from error
    if network:
        check_network(path, estimator, saved.arrays, saved.fitted, network)
    for key, value in saved.fitted.items():
        setattr(estimator, key, value)
    for key, array in saved.arrays.items():
        setattr(estimator, key, array if array.ndim else array[()])
    if network:
        estimator.input_shape_ = tuple(saved.arrays["input_shape_"].tolist())
        estimator.parameters_ = network
    keep_params(estimator)
    return estimator


def load_predictor(path: PathLike) -> "LinearPredictor | None":
    """Return a saved linear model for predictions alone; None for any other model.

    Of a pipeline, its last step, where only declared columns come before it: then the
    rows are features of these columns. None of another pipeline. It needs neither JAX
    nor scikit-learn, which take long to import. ModelFileError as `load`.
    """
    *before, saved = read_steps(path).values()
    if saved.home == "privfeat.preprocessing":
        raise ModelFileError(
            f"{str(path)!r} must hold a model that predicts, got the step {saved.name} "
            "of preprocessing. Use it from Python: privfeat.load(path)."
        )
    if saved.parameters or [step.name for step in before] not in ([], [COLUMNS]):
        return None
    found = predictor_of(path, saved)
    read_statement(path, read_document(path))
    return found


def load_statement(path: PathLike) -> "PrivacyStatement":
    """Return the privacy statement of a saved model; its arrays are not read.

    ModelFileError as `load`; also for a statement that its own releases contradict.
    """
    return read_statement(path, read_document(path))


def load_origin(path: PathLike) -> dict[str, Any]:
    """Return how the features of a saved model were made; empty where not known."""
    return dict(read_document(path).get("features", {}))


def load_table(path: PathLike) -> dict[str, Any] | None:
    """Return what a saved model knows of its table: ``"columns"`` and ``"target"``.

    None where it was fitted to features.

    Raises
    ------
    ModelFileError
        As `load`; also for a declaration that is not complete.
    """
    table = read_document(path).get("table")
    try:
        return None if table is None else as_table(table)
    except (TypeError, ValueError) as error:
        raise damaged(path, "it declares no columns of a table") from error


def load_class_names(path: PathLike) -> list[str] | None:
    """Return the class names of a saved model, or None if it was saved without."""
    names: list[str] | None = read_document(path)["class_names"]
    return names
