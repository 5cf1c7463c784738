"""What we say in the place of other packages, whose messages may show private data."""

import re

SPARSE = (
    "X and y must not be sparse matrices here. Sparse input is refused: pass dense "
    "arrays, or sparse rows to DPAdamLinear, DPLeastSquares or DPNearestMean with "
    "center=False, since centred rows are dense."
)
# A part of their message, and what we raise instead. The estimator checks of
# scikit-learn look for some of these words.
_REWORDED = {
    "Reshape your data": "X must be a 2D array, got another. Reshape your data.",
    "Complex data not supported": "Complex data not supported: X must be real.",
    "could not convert string": "X and y must hold numbers, got text. Leave such "
    "columns out, or make one of 0 and 1 for each value of a public list: "
    "PublicColumns does.",
    "inconsistent numbers of samples": "X and y must not have inconsistent lengths.",
    "y should be a 1d array": "y should be a 1d array, got another shape.",
    "inhomogeneous shape": "X and y must be rectangular: rows of one length.",
    "setting an array element": "X and y must be rectangular: rows of one length.",
    "y cannot be None": "fit requires y to be passed, but the target y is None.",
    "target y is None": "fit requires y to be passed, but the target y is None.",
    "argument must be a string or a real number": "X and y must hold numbers: an "
    "argument must be a string or a real number, got another object.",
    "sparse": SPARSE,
    "Sparse": SPARSE,
    "requires grad": "X and y must not require gradients. Pass tensor.detach().",
    "Unknown label type": "y must hold classes. Unknown label type: pass integers or "
    "strings, not continuous numbers.",
    "contains NaN": "X and y must be finite: Input contains NaN. Fill gaps with a "
    "public constant, not with the mean of the records.",
    "contains infinity": "X and y must be finite: Input contains infinity or a value "
    "too large for its type.",
    "0 feature(s)": "X must have features: found 0 feature(s) (shape=(, 0)) while a "
    "minimum of 1 is required.",
    "0 sample(s)": "X must have records: found 0 sample(s) while a minimum of 1 is "
    "required.",
}
# Messages that hold no data: numbers of columns alone.
_HARMLESS = (
    r"X has \d+ features, but \w+ is expecting \d+ features as input\.?",
    r"Found array with dim \d+[.,] ?(while dim <= 2 is required( by \w+)?\.?|"
    r"\w+ expected <= 2\.)",
)
_NAMES = "The feature names should match those that were passed during fit."
# Those that show no data, and are passed on.
WARNINGS = (
    r"X does not have valid feature names, but \w+ was fitted with feature names",
    r"X has feature names, but \w+ was fitted without feature names",
    r"A column-vector y was passed when a 1d array was expected\. Please change the "
    r"shape of y to \(n_samples, ?\), for example using ravel\(\)\.",
)
_UNKNOWN = (
    "X, y and groups must be readable as arrays, got what NumPy, scikit-learn or an "
    "object in them refuses. Its message may show data and is kept back. Pass arrays "
    "of numbers; labels and users may be strings."
)


def category_of(text: str) -> type[Warning]:
    """Return the category of a warning of `WARNINGS`, all of which are sklearn's."""
    from sklearn.exceptions import DataConversionWarning

    return DataConversionWarning if text.startswith("A column") else UserWarning


def refusal_of(error: Exception) -> Exception:
    """Return our error for one of another package."""
    if isinstance(error, MemoryError):
        return MemoryError("X and y must fit into memory. Use a feature file.")
    kind = TypeError if isinstance(error, TypeError) else ValueError
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - anything may show data
        return kind(_UNKNOWN)
    names = text.startswith(_NAMES) and type(error) is ValueError
    if names or any(re.fullmatch(pattern, text) for pattern in _HARMLESS):
        return kind(text)
    known = (sentence for phrase, sentence in _REWORDED.items() if phrase in text)
    return kind(next(known, _UNKNOWN))
