"""A transformer from a public declaration of columns to features of equal size."""

import math
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from privfeat._messages import array_of, refuse_altered, without_data
from privfeat._warnings import warn
from privfeat.data.tables.files import arrow_column, column_values
from privfeat.estimation.bases import Parameters
from privfeat.preprocessing.declaration import Column, parse_columns
from privfeat.preprocessing.values import Refusals, outputs_of

# From here on the larger of two raw columns decides what a linear model can learn.
_UNEQUAL = 3.0


class PublicColumns(TransformerMixin, Parameters):
    """Make features of the columns of a table, by what everyone knows of them.

    Numbers and dates are clipped to their public bounds, which become -1 and 1; a
    boolean becomes -1 or 1; a category one feature of 0 and 1 for each that is
    declared. Nothing is fitted: what a row becomes depends on that row and ``columns``
    alone, so that whatever protects the features of a row protects the row.

    Parameters
    ----------
    columns : mapping of str to mapping
        What is **public** of each column, by its name. ``kind`` is ``"numeric"``,
        ``"integer"``, ``"boolean"``, ``"category"``, ``"date"`` or ``"ignored"``. There
        are further keys:

        ``bounds``, of numbers and dates
            ``[low, high]``, finite. Values outside, infinite ones among them, are
            clipped to it. Dates are in ISO 8601; without a time zone they are in UTC.
        ``treatment``, of numbers
            ``"scaled"`` (default), ``"log"``, for which bounds are above 0 and which
            scales logarithms, or ``"raw"``, which clips and does not scale.
        ``unit``, of numbers
            A text for readers.
        ``categories``, of a category
            All of them, at least two: texts, or numbers, where 3, "3" and "3.0" are
            one. If one is a text such as "007", a table must have texts, not numbers.
        ``unseen``, of a category
            What another becomes: ``"refuse"`` (default) raises, ``"neutral"`` is 0 in
            all features, and one of the categories counts as that.
        ``missing``, of all but ignored ones
            What a missing value becomes: ``"refuse"`` (default) raises, ``"neutral"``
            is 0, the middle of the bounds or no category, ``"indicator"`` is the same
            beside one more feature that is 1, and a constant counts as that value.
        ``missing_values``, of all but ignored ones
            A list of further texts and numbers that mean a missing value, beside None,
            NaN, NaT and texts of blanks.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns seen in `fit`, ignored ones included.
    feature_names_in_ : array of str
        Their names, if they have any.

    Raises
    ------
    TypeError, ValueError
        In `fit` and `transform`: if a declaration is not complete, a column is not
        declared or missing, or a value is none that its declaration allows. Messages
        name columns and rules, and never a value of a table.

    See Also
    --------
    read_columns : The same declaration from a TOML file.

    Notes
    -----
    **Guarantee.** No row decides what another becomes, nor whether a feature exists. A
    fit that is private for features of rows is so for the rows, with the same epsilon:
    neighbouring tables become neighbouring features. That `transform` raises depends on
    the rows, as everything that an error says.

    **Public.** ``columns``, all of it. Bounds and categories that were read from
    private data are not public, and then no statement covers them.

    **Estimators** scale rows to one norm by default, as features of networks are only
    directions. Of few columns that leaves little: pass them ``row_scaling="clip"`` and
    ``clip_norm=columns.clip_norm``, as the command line does.

    A table with names may have its columns in any order, and lack ignored ones. An
    array has the declared columns in their order. Text is refused: its words are not
    known before.

    Examples
    --------
    >>> columns = PublicColumns(
    ...     {
    ...         "age": {"kind": "integer", "bounds": [0, 100], "unit": "years"},
    ...         "smoker": {"kind": "boolean", "missing": "neutral"},
    ...         "clinic": {"kind": "category", "categories": ["Bonn", "Kiel"]},
    ...     }
    ... )
    >>> columns.fit_transform([[75, "yes", "Kiel"], [120, None, "Bonn"]])
    array([[0.5, 1. , 0. , 1. ],
           [1. , 0. , 1. , 0. ]])
    >>> columns.get_feature_names_out().tolist()
    ['age', 'smoker', 'clinic_Bonn', 'clinic_Kiel']
    """

    columns: Mapping[str, Mapping[str, Any]] | None = field(default=None, kw_only=False)

    @property
    def clip_norm(self) -> float:
        """A public ``clip_norm`` for an estimator with ``row_scaling="clip"``.

        Half of the largest norm that a row can have, but for indicators.
        """
        return clip_norm_of(parse_columns(self.columns))

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that nothing is fitted, and what a table may hold."""
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the declaration and the names of the columns; learn nothing.

        Parameters
        ----------
        X : table or array of shape (n_samples, n_columns)
            Only its columns are looked at.
        y : object, optional
            Not used.

        Warns
        -----
        UserWarning
            If raw columns differ much in size, by their bounds: the larger ones would
            hide the others from a linear model.
        """
        declared = parse_columns(self.columns)
        _values(self, X, declared, reset=True)
        if (sentence := find_unequal(declared)) is not None:
            warn(sentence, UserWarning)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the features of each row; `fit` need not come before.

        Parameters
        ----------
        X : table or array of shape (n_samples, n_columns)

        Returns
        -------
        features : float64 array of shape (n_samples, n_features)
            Finite, and in [-1, 1] but for raw columns.
        """
        declared = parse_columns(self.columns)
        values = _values(self, X, declared, reset=False)
        return features_of(declared, values)

    @property
    def array_order(self) -> list[str]:
        """Names of the columns in the order in which an array is read: as declared."""
        return list(self.columns or {})

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the features: those of columns, of categories with both.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns; they must be those that were fitted.
        """
        names = getattr(self, "feature_names_in_", None)
        if input_features is not None:
            given = list(input_features)
            if names is not None and given != list(names):
                raise ValueError("input_features is not equal to feature_names_in_")
            if len(given) != getattr(self, "n_features_in_", len(given)):
                raise ValueError(
                    "input_features should have length equal to the number of columns."
                )
        outputs = [n for column in parse_columns(self.columns) for n in column.outputs]
        return np.array(outputs, dtype=object)


def features_of(
    declared: tuple[Column, ...], values: Mapping[str, NDArray[Any]]
) -> NDArray[np.float64]:
    """Return the features of rows, from the values of each column that is used.

    One error names all columns that have a value that is refused.
    """
    refusals, found = Refusals(), []
    for column in declared:
        if column.outputs:
            with refusals.kept():
                found.append(outputs_of(column, values[column.name]))
    refusals.raised()
    return np.hstack(found)


def clip_norm_of(declared: tuple[Column, ...]) -> float:
    """Return half of the largest norm of a row, which few rows are longer than.

    On the tables of ``benchmarks/tables.py`` it is better than a fourth, or all of it.
    """
    return math.hypot(*(column.size for column in declared if column.outputs)) / 2.0


def find_unequal(declared: tuple[Column, ...]) -> str | None:
    """Return a warning if public bounds let some raw columns hide other columns."""
    used = [column for column in declared if column.outputs]
    sizes = sorted((column.size, column.name) for column in used)
    (small, smallest), (large, largest) = sizes[0], sizes[-1]
    if not large > _UNEQUAL * small:
        return None
    return (
        "a column of a much larger size hides the others from a private linear model: "
        f"raw column {largest!r} has values up to {large:g}, column {smallest!r} up to "
        f"{small:g}. Declare treatment scaled for raw columns, or leave it out."
    )


def check_names(
    names: list[Any], declared: tuple[Column, ...], *, strict: bool = True
) -> None:
    """Raise ValueError unless a table has each column that is used, and once.

    TypeError if a name is no text. ``strict`` refuses columns that are not declared.
    """
    if not all(isinstance(name, str) for name in names):
        # by place they would be an array, whose type all columns decide together
        raise TypeError(
            "the columns of a table must have names of text, got another. Name them as "
            "they are declared, as by X.columns = [...]."
        )
    known = {column.name for column in declared}
    for column in declared:
        if column.outputs and names.count(column.name) != 1:
            raise ValueError(
                f"the table must have column {column.name!r} once, as it is declared, "
                f"got it {names.count(column.name)} times. Correct the table. Before a "
                "fit it may be declared ignored; later, add it empty, with a meaning "
                "of missing that keeps the features: neutral or a constant."
            )
    other = next((name for name in names if name not in known), None)
    if strict and other is not None:
        raise ValueError(
            f"the columns must be declared, but column {other!r} is not. Declare it, "
            "as ignored if a model shall not learn from it."
        )


def _values(
    estimator: PublicColumns, X: Any, declared: tuple[Column, ...], *, reset: bool
) -> dict[str, NDArray[Any]]:
    """Return the values of each column that is used, by its name."""
    arrow = hasattr(X, "column_names") and hasattr(X, "schema")
    names = list(X.column_names if arrow else getattr(X, "columns", ()))
    if names:
        check_names(names, declared)
        if reset:
            without_data(validate_data, estimator, X, skip_check_array=True)
        return {
            column.name: without_data(arrow_column, X, column.name)
            if arrow
            else column_values(X[column.name], exact=column.kind == "category")
            for column in declared
            if column.outputs
        }
    refuse_altered(X)
    # objects: in an array of texts a number beside them would be one as well
    rows = array_of(X, object) if isinstance(X, list | tuple) else X
    array = without_data(
        check_array, rows, dtype=None, ensure_all_finite=False, input_name="X"
    )
    if not reset and hasattr(estimator, "n_features_in_"):
        without_data(validate_data, estimator, X, skip_check_array=True, reset=False)
    if array.shape[1] != len(declared):
        raise ValueError(
            f"X must have the {len(declared)} columns that are declared, got "
            f"{array.shape[1]}. Declare each, as ignored if it shall not be used."
        )
    if reset:
        without_data(validate_data, estimator, X, skip_check_array=True)
    return {column.name: array[:, i] for i, column in enumerate(declared)}
