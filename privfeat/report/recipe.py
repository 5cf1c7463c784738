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
    weights: bool = False,
    public: bool = False,
    pipeline: Any = None,
    shifted: Sequence[str] = (),
) -> str:
    """Return code that fits such a model, with all parameters that are written.

    ``name`` is the class of the estimator, and ``params`` are its parameters, of which
    those that `privfeat.save` does not write are left out. For users, the ``unit``, the
    fit gets ``groups``. ``table`` is what is declared of the one whose columns became
    the features, and ``rows`` what ``X`` holds without one. With ``weights`` it started
    from such, and with ``public`` it had such rows, which it does not keep.
    ``class_names`` are of the classes 0, 1, ... A ``pipeline``, also of scikit-learn,
    that was fitted says its parameters and those of its steps. ``shifted`` says how its
    probabilities were moved after the fit.
    """
    prior = params.get("prior") is not None  # more numbers than can be shown
    given = [
        f"    {key}={'prior' if key == 'prior' and prior else repr(value)},\n"
        for key, value in params.items()
        if key not in (*STAYS_AT_HOME, "verbose")
    ]
    given += ["    weights=weights,\n"] * weights + ["    public=public,\n"] * public
    X, before, made = "X", "", f"{name}(\n{''.join(given)})"
    imports = [f"from {PIPELINES.get(name, 'privfeat')} import {name}"]
    if pipeline is not None:
        made, imports = _code_of(pipeline), [*imports, *_imports_of(pipeline)]
    told = [f"X: an array of the {rows}"]
    if table is not None:
        columns = {k: v for k, v in table["columns"].items() if k != table["target"]}
        lines = [f"    {key!r}: {said!r},\n" for key, said in columns.items()]
        before = f"columns = PublicColumns({{\n{''.join(lines)}}})\n"
        X = "columns.fit_transform(table)"
        told = [f"table: a data frame with the columns {', '.join(map(repr, columns))}"]
    if pipeline is not None and type(pipeline.steps[0][1]).__name__ == COLUMNS:
        X, before = "table", ""  # it reads the table itself
    if before:
        imports.append("from privfeat import PublicColumns")
    numbers = ", ".join(f"{i} {one!r}" for i, one in enumerate(class_names))
    told.append(f"y: the class of each row, by its number: {numbers}")
    if not class_names:
        told[-1] = "y: the class of each row, or its target"
    if unit == "user":
        told.append("groups: the user of each row")
    if weights:
        told.append("weights: those that it started from, which no file of it holds")
    if public:
        told.append("public: the public rows of the fit, which no file of it holds")
    if prior:
        told.append("prior: privfeat.load(FOLDER).prior, of the folder of this model")
    return "\n".join(
        [
            f"pip install privfeat=={version}\n",
            *imports,
            "",
            *(f"# {line}" for line in told),
            f"{before}clf = {made}",
            f"clf.fit({X}, y{', groups=groups' if unit == 'user' else ''})",
            *(f"# then privfeat.analysis.rates.shifted_rates: {s}" for s in shifted),
        ]
    )


def _code_of(estimator: Any) -> str:
    """Return how it is made, with all parameters that are written and no default."""
    steps = getattr(estimator, "steps", None)
    first = type(estimator)().get_params(deep=False) if steps is None else {}
    words = [
        f"{key}={value!r}"
        for key, value in estimator.get_params(deep=False).items()
        if key not in (*STAYS_AT_HOME, *NOT_WRITTEN)
        and value is not None
        and repr(first.get(key)) != repr(value)
    ]
    if steps is not None:
        made = (f"    ({name!r}, {_code_of(step)}),\n" for name, step in steps)
        words = [f"[\n{''.join(made)}]", *words]
    return f"{type(estimator).__name__}({', '.join(words)})"


def _imports_of(pipeline: Any) -> list[str]:
    """Return the lines that import the classes of its steps."""
    kinds = {type(step).__name__ for _, step in pipeline.steps}
    homes = {kind: PUBLIC.get(kind) or home_of(kind) for kind in kinds}
    return [f"from {homes[kind]} import {kind}" for kind in sorted(kinds)]
