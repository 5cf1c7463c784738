"""Saved models as commands use them: for rows that are features already."""

from typing import Any


def load_for_rows(path: str) -> Any:
    """Return what predicts rows as commands read them: features, or images.

    Of a pipeline that begins with declared columns, what comes after them: commands
    make features of a table by the declaration that the model was saved with.
    """
    from privfeat import persistence
    from privfeat.persistence.saved_models import COLUMNS

    model = persistence.load(path)
    steps = getattr(model, "steps_", getattr(model, "steps", None))  # fitted, or given
    if steps is None or type(steps[0][1]).__name__ != COLUMNS:
        return model
    if len(steps) == 2:
        return steps[-1][1]
    from sklearn.pipeline import Pipeline

    return Pipeline(steps[1:])


def last_of(model: Any) -> Any:
    """Return the last step of a pipeline, fitted if the pipeline is; else the model."""
    steps = getattr(model, "steps_", getattr(model, "steps", None))
    return model if steps is None else steps[-1][1]


def with_columns(path: str) -> Any:
    """Return a saved model for the world outside, which has its tables as they are.

    A model that `fit` made of a table knows how its columns are declared, and is
    returned with them, as a pipeline.
    """
    from privfeat import persistence
    from privfeat.persistence.saved_models import COLUMNS, PIPELINE

    model, table = persistence.load(path), persistence.load_table(path)
    private = type(model).__name__ == PIPELINE
    if table is None or (hasattr(model, "steps") and not private):
        return model
    if private and type(model.steps_[0][1]).__name__ == COLUMNS:
        return model
    from sklearn.pipeline import make_pipeline

    from privfeat.preprocessing import PublicColumns

    declared = {
        name: said for name, said in table["columns"].items() if name != table["target"]
    }
    if not private:
        return make_pipeline(PublicColumns(declared), model)
    first = (COLUMNS, PublicColumns(declared))
    model.steps, model.steps_ = [first, *model.steps], [first, *model.steps_]
    return model
