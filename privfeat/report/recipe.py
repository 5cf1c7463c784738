"""How to fit such a model again, in Python."""

from collections.abc import Mapping, Sequence
from typing import Any

from privfeat._types import STAYS_AT_HOME, Unit

__all__ = ["recipe_of"]


def recipe_of(
    name: str,
    params: Mapping[str, Any],
    *,
    version: str,
    unit: Unit,
    table: Mapping[str, Any] | None = None,
    class_names: Sequence[str] = (),
    rows: str = "features",
) -> str:
    """Return code that fits such a model, with all parameters that are written.

    Parameters
    ----------
    name : str
        The class of the estimator.
    params : mapping
        Its parameters; what `privfeat.save` does not write is left out.
    version : str
        Version of privfeat.
    unit : {"record", "user"}
        For users the fit gets ``groups``.
    table : mapping, optional
        What is declared of the table whose columns became the features.
    class_names : sequence of str
        Of the classes 0, 1, ...
    rows : str
        What ``X`` holds, if there is no table.
    """
    given = [
        f"    {key}={value!r},\n"
        for key, value in params.items()
        if key not in (*STAYS_AT_HOME, "verbose")
    ]
    X, imported, before = "X", name, ""
    told = [f"X: an array of the {rows}"]
    if table is not None:
        columns = {k: v for k, v in table["columns"].items() if k != table["target"]}
        lines = [f"    {key!r}: {said!r},\n" for key, said in columns.items()]
        before = f"columns = PublicColumns({{\n{''.join(lines)}}})\n"
        X, imported = "columns.fit_transform(table)", f"{name}, PublicColumns"
        told = [f"table: a data frame with the columns {', '.join(map(repr, columns))}"]
    numbers = ", ".join(f"{i} {one!r}" for i, one in enumerate(class_names))
    told.append(f"y: the class of each row, by its number: {numbers}")
    if not class_names:
        told[-1] = "y: the class of each row, or its target"
    if unit == "user":
        told.append("groups: the user of each row")
    return "\n".join(
        [
            f"pip install privfeat=={version}\n",
            f"from privfeat import {imported}\n",
            *(f"# {line}" for line in told),
            f"{before}clf = {name}(\n{''.join(given)})",
            f"clf.fit({X}, y{', groups=groups' if unit == 'user' else ''})",
        ]
    )
