"""The keys of statements, ledgers and feature files, as people say them."""

from collections.abc import Sequence
from typing import Any

from privfeat._types import SHIFTED
from privfeat.core.statement.privacy_statement import PrivacyStatement

UNITS = {
    "record": "one record (a row of the data)",
    "user": "all records of one user together",
}
WHOLE = {"record": "one record", "user": "all records of one user"}
_CHANGES = {
    "add_remove": "{}, there or not there",
    "replace_one": "{}, as they are or replaced; their number is public",
}
ACCOUNTINGS = {
    "exact": "exact, of Gaussian noise (Balle & Wang 2018)",
    "zcdp": "zero-concentrated differential privacy (Bun & Steinke 2016)",
    "pld": "privacy loss distribution, by dp-accounting",
    "rdp": "Rényi divergences, by dp-accounting",
    "selection": "the best of a random number of runs",
}
RELEASES = {
    "class_contrasts": "differences between classes",
    "class_counts": "number of records of each class",
    "class_grams": "products of features, by class",
    "class_sums": "sums of the features, by class",
    "confidence_gap": "distance of confidence and accuracy",
    "conformity": "how probable the true classes were",
    "errors": "errors of the predictions",
    "feature_mean": "sum of the features",
    "gradient": "gradient of the loss",
    "gram": "products of features",
    "hessian": "curvature of the loss",
    "levels": "numbers of records in ranges of each column",
    "moments": "sums of the features, and of their squares or their products with the "
    "target",
    "outcomes": "numbers of right and wrong predictions",
    "residual_sums": "sums of what is left to explain",
    "score": "number of right predictions of a candidate",
    "scores": "numbers of predictions, by their probability",
}
# Attributes of feature files and of networks.
_NAMES = {
    "clip_norm": "bound on the gradient of a record",
    "crop": "side of the images, in pixels",
    "dataset": "name of the data",
    "feature_dtype": "type of the numbers",
    "input_size": "size of the input",
    "interpolation": "how images are made larger or smaller",
    "layers": "layers whose output is used",
    "max_length": "longest text, in tokens",
    "mean": "mean of the pixels that the network expects",
    "model": "network",
    "model_kwargs": "settings of the network",
    "model_name": "architecture",
    "model_tag": "version of the weights",
    "n_features": "number of features",
    "pairs": "what is made of a pair of texts",
    "pooling": "how places or words become one",
    "precision": "precision of the network",
    "resize": "side to which images are scaled, in pixels",
    "std": "deviation of the pixels that the network expects",
    "versions": "versions of the programs",
    "views": "views of each image",
    "weights_license": "licence of the weights",
    "weights_sha256": "SHA-256 of the weights",
    "weights_source": "where the weights are from",
}


def named(key: Any) -> str:
    """Return a key in words.

    >>> named("n_features"), named("p_value")
    ('number of features', 'p value')
    """
    return _NAMES.get(str(key), str(key).replace("_", " "))


def shifts_of(statement: PrivacyStatement) -> Sequence[str]:
    """Return what a statement says of probabilities that were shifted after the fit."""
    return [fact for fact in statement.public if fact.startswith(SHIFTED)]


def neighbours(unit: str, adjacency: str) -> str:
    """Return in words what neighbouring data sets differ by.

    >>> neighbours("record", "add_remove")
    'one record, there or not there'
    """
    return _CHANGES[adjacency].format(WHOLE[unit])
