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


def with_columns(path: str) -> Any:
    """Return a saved model for the world outside, which has its tables as they are.

    A model that `fit` made of a table knows how its columns are declared, and is
    returned with them, as a pipeline.
    """
    from privfeat import persistence

    model, table = persistence.load(path), persistence.load_table(path)
    if table is None or hasattr(model, "steps"):
        return model
    from sklearn.pipeline import make_pipeline

    from privfeat.preprocessing import PublicColumns

    declared = {
        name: said for name, said in table["columns"].items() if name != table["target"]
    }
    return make_pipeline(PublicColumns(declared), model)
