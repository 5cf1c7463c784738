"""Features of texts without weights: hashed n-grams."""

from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer

from ..arguments import Options
from ..errors import ExtractError
from .batches import Rows, TextExtractor, of_pairs, width
from .options import NGRAMS

DEFAULTS = {"n_features": 4096, "analyzer": "word", "min_n": 1, "max_n": 2}
ANALYZERS = ("word", "char", "char_wb")
MOST = 65_536  # columns: rows are dense
_ROWS = 256  # of a batch: with all columns 64 MiB


class NgramExtractor(TextExtractor):
    """Counts n-grams in columns by their hash, with scikit-learn.

    ``model_kwargs`` may set ``n_features`` (columns, at most 65,536), ``analyzer``
    ("word", "char" or "char_wb", as scikit-learn has them), ``min_n`` and ``max_n``.
    ExtractError if one is out of range.

    **Source.** Weinberger et al., Feature Hashing for Large Scale Multitask Learning,
    2009, as scikit-learn's ``HashingVectorizer``. Nothing is fitted, neither a
    vocabulary nor how rare a word is, which would both reveal records. Rows have norm
    one; a text without a word is a row of zeros.
    """

    def __init__(self, options: Options) -> None:
        (network,) = options.networks
        unknown = sorted(set(network.model_kwargs) - set(DEFAULTS))
        if unknown:
            raise ExtractError(
                f"--model-kwargs of {NGRAMS} must be among {sorted(DEFAULTS)}, got "
                f"{unknown[0]!r}."
            )
        kwargs: dict[str, Any] = {**DEFAULTS, **network.model_kwargs}
        for name, most in (("n_features", MOST), ("max_n", 8), ("min_n", 8)):
            if type(kwargs[name]) is not int or not 1 <= kwargs[name] <= most:
                raise ExtractError(
                    f"{name} of --model-kwargs must be a whole number in [1, {most}], "
                    f"got {kwargs[name]!r}."
                )
        if not kwargs["min_n"] <= kwargs["max_n"]:
            raise ExtractError("min_n of --model-kwargs must be at most max_n.")
        if kwargs["analyzer"] not in ANALYZERS:
            raise ExtractError(
                f"analyzer of --model-kwargs must be among {ANALYZERS}, got "
                f"{kwargs['analyzer']!r}."
            )
        self._hashing = HashingVectorizer(
            n_features=kwargs["n_features"],
            analyzer=kwargs["analyzer"],
            ngram_range=(kwargs["min_n"], kwargs["max_n"]),
            norm="l2",
        )
        self.n_features = width(kwargs["n_features"], options.text)
        self.n_at_once = options.batch_size or _ROWS
        self.metadata = {
            "model": NGRAMS,
            "model_name": NGRAMS,
            "model_tag": f"scikit-learn {version('scikit-learn')}",
            "model_kwargs": kwargs,
            "weights_sha256": "",
            "weights_source": "none",
            "weights_license": network.weights_license or "none",
            "pooling": "none",
            "precision": "float32",
            **of_pairs(options.text),
        }
        self.arguments = {**self.metadata, "text": list(options.text)}
        self.device_kind: list[str] = []

    def _features(self, texts: list[str]) -> Rows:
        found = self._hashing.transform(texts)
        return np.asarray(found.toarray(), np.float32)
