"""Whether a table that is declared makes the features that a model was fitted to."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privfeat.preprocessing.declaration import Column


def check_table(
    estimator: Any, own: Mapping[str, Any] | None, table: Mapping[str, Any]
) -> None:
    """Raise ValueError unless a table makes the features of a fitted estimator.

    Commands make features by the table, and take them by place. ``own`` is what the
    first step of a pipeline declares, if it declares columns.
    """
    found = _columns(table)
    if own is not None:
        _check_columns(_columns(own), found)
        return
    outputs = [name for column in found for name in column.outputs]
    width = _width(estimator)
    if width not in (None, len(outputs)):
        raise ValueError(
            f"table must make the {width} features that the model was fitted to, got "
            f"{len(outputs)}. Declare its columns as they were for the fit: of a "
            "fitted model missing may become neutral or a constant, but not indicator, "
            "nor may a column become ignored, which changes the number of features."
        )
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None and list(names) != outputs:
        raise ValueError(
            f"table must make the features that the model was fitted to, "
            f"{list(names)}, in their order, got {outputs}: features are taken by "
            "place. Declare the columns of the fit in their order."
        )


def _columns(table: Mapping[str, Any]) -> list["Column"]:
    """Return the columns that a model learns from."""
    from privfeat.preprocessing.declaration import parse_columns

    said = {k: v for k, v in table["columns"].items() if k != table["target"]}
    return [column for column in parse_columns(said) if column.outputs]


def _check_columns(own: list["Column"], found: list["Column"]) -> None:
    """Raise ValueError unless both declare the same columns, in one order."""
    for column, other in zip(own, found, strict=False):
        if column.name != other.name:
            raise ValueError(
                "table must have the columns of the pipeline in their order, got "
                f"{other.name!r} instead of {column.name!r}: features are taken by "
                "place. Declare them as PublicColumns of the pipeline does."
            )
        for key in ("kind", "bounds", "treatment", "categories", "outputs"):
            if getattr(column, key) != getattr(other, key):
                raise ValueError(
                    f"table must declare column {column.name!r} as PublicColumns of "
                    f"the pipeline does, got other {_WORDS.get(key, key)}. Of a fitted "
                    "model only missing and unseen may change: neutral or a constant."
                )
    if len(own) != len(found):
        raise ValueError(
            f"table must have the {len(own)} columns that the pipeline learns from, "
            f"beside the target, got {len(found)}. Declare them as PublicColumns of "
            "the pipeline does, and name the target."
        )


_WORDS = {"outputs": "features (by missing)"}


def _width(estimator: Any) -> int | None:
    """Return the number of features of a fit; None where records are none."""
    shape: Any = getattr(estimator, "input_shape_", ())
    width: int | None = getattr(estimator, "n_features_in_", None)
    return int(shape[0]) if len(shape) == 1 else width
