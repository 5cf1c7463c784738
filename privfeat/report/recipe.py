"""How to fit such a model again, in Python."""

from collections.abc import Mapping, Sequence
from typing import Any

from privfeat._types import STAYS_AT_HOME, Unit
from privfeat.persistence.pipelines import NOT_WRITTEN, PIPELINES, PUBLIC
from privfeat.persistence.saved_models import COLUMNS, home_of


def recipe_of(
    name: str,
    params: Mapping[str, Any],
    *,
    version: str,
    unit: Unit,
    table: Mapping[str, Any] | None = None,
    class_names: Sequence[str] = (),
    rows: str = "features",
    pipeline: Any = None,
) -> str:
    """Return code that fits such a model, with all parameters that are written.

    ``name`` is the class of the estimator, and ``params`` are its parameters, of which
    those that `privfeat.save` does not write are left out. For users, the ``unit``, the
    fit gets ``groups``. ``table`` is what is declared of the one whose columns became
    the features, and ``rows`` what ``X`` holds without one. ``class_names`` are of the
    classes 0, 1, ... A ``pipeline``, also of scikit-learn, that was fitted says its
    parameters and those of its steps.
    """
    given = [
        f"    {key}={value!r},\n"
        for key, value in params.items()
        if key not in (*STAYS_AT_HOME, "verbose")
    ]
    X, imported, before = "X", name, ""
    home = None if pipeline is None else PIPELINES[name]
    made = f"{name}(\n{''.join(given)})"
    homes = ""
    if pipeline is not None:
        made, homes = _code_of(pipeline), _imports_of(pipeline)
    told = [f"X: an array of the {rows}"]
    own = pipeline is not None and type(pipeline.steps[0][1]).__name__ == COLUMNS
    if table is not None:
        columns = {k: v for k, v in table["columns"].items() if k != table["target"]}
        lines = [f"    {key!r}: {said!r},\n" for key, said in columns.items()]
        before = f"columns = PublicColumns({{\n{''.join(lines)}}})\n"
        X, imported = "columns.fit_transform(table)", f"{name}, PublicColumns"
        told = [f"table: a data frame with the columns {', '.join(map(repr, columns))}"]
    if own:  # it reads the table itself
        X, imported, before = "table", name, ""
    if home is not None and not own and table is not None:
        imported, homes = name, f"from privfeat import PublicColumns\n{homes}"
    numbers = ", ".join(f"{i} {one!r}" for i, one in enumerate(class_names))
    told.append(f"y: the class of each row, by its number: {numbers}")
    if not class_names:
        told[-1] = "y: the class of each row, or its target"
    if unit == "user":
        told.append("groups: the user of each row")
    return "\n".join(
        [
            f"pip install privfeat=={version}\n",
            f"from {home or 'privfeat'} import {imported}\n{homes}",
            *(f"# {line}" for line in told),
            f"{before}clf = {made}",
            f"clf.fit({X}, y{', groups=groups' if unit == 'user' else ''})",
        ]
    )


def _code_of(estimator: Any) -> str:
    """Return how it is made, with all parameters that are written and no default."""
    first = (
        type(estimator)().get_params(deep=False) if not _has_steps(estimator) else {}
    )
    words = [
        f"{key}={value!r}"
        for key, value in estimator.get_params(deep=False).items()
        if key not in (*STAYS_AT_HOME, *NOT_WRITTEN)
        and value is not None
        and repr(first.get(key)) != repr(value)
    ]
    if _has_steps(estimator):
        steps = (f"    ({n!r}, {_code_of(step)}),\n" for n, step in estimator.steps)
        words = [f"[\n{''.join(steps)}]", *words]
    return f"{type(estimator).__name__}({', '.join(words)})"


def _has_steps(estimator: Any) -> bool:
    return hasattr(estimator, "steps")


def _imports_of(pipeline: Any) -> str:
    """Return the lines that import the classes of its steps."""
    kinds = {type(step).__name__ for _, step in pipeline.steps}
    homes = {kind: PUBLIC.get(kind) or home_of(kind) for kind in kinds}
    return "".join(f"from {homes[kind]} import {kind}\n" for kind in sorted(kinds))
