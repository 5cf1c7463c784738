"""Weights of classes: public numbers, or one over released counts."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privfeat._checks import check_positive
from privfeat._types import Adjacency, ClassWeight
from privfeat.core.accounting.plan import Query
from privfeat.core.bounds import replacement
from privfeat.core.noise.release import Release
from privfeat.estimation.bases import Parameters
from privfeat.estimation.labels import Labels
from privfeat.linear.problem import ClassWeights, Shape, weight_of

if TYPE_CHECKING:
    from privfeat.core.noise.gaussian_mechanism import GaussianMechanism
    from privfeat.estimation.rows.bounded import BoundedRows

COUNTS = "class_counts"
# Part of rho that the counts get: all other releases have 2.6 % more noise for it.
_SHARE = 0.05
_LARGEST_RATIO = 1e9
# What tells a class from the others, in units of the norm of a row, about.
_SIGNAL = 0.1


class WeighsClasses(Parameters):
    """An estimator that takes what is public: weights, a prior, and other rows."""

    class_weight: ClassWeight = None
    prior: Any = None
    public: Any = None
    clip_norm: float = 1.0

    def _weights(
        self,
        rows: "BoundedRows",
        mechanism: "GaussianMechanism",
        shape: Shape,
        noise_stddev: float,
    ) -> NDArray[np.float64]:
        """Return the weights of labels, of which the last is that of -1.

        ``noise_stddev`` is that of a coordinate of all that is released of a class.
        """
        given = shape.class_weight
        if given == "balanced":
            counts = mechanism.release(
                COUNTS, rows.class_counts(max(shape.n_outputs, 2))
            )
            noise = noise_stddev * math.sqrt(shape.n_columns)
            least = noise / (_SIGNAL * float(self.clip_norm))
            weights = balanced_weights(counts, least)
        else:
            weights = np.array(given)
        self.class_weight_ = weights[::-1] if shape.n_outputs == 1 else weights
        return weights


def class_weights(class_weight: Any, labels: Labels) -> ClassWeights:
    """Return what a parameter ``class_weight`` says of the classes, the largest 1.

    Only ratios matter: weights that are ``c`` times as large have ``c`` times the
    sensitivity, and noise. The scale decides in which unit ``ridge`` and learning rates
    are, and with a largest weight of 1 sensitivities are those without weights.

    TypeError or ValueError if it is neither ``"balanced"``, a mapping of classes to
    weights nor an array of one for each class, all finite and > 0; or if records may
    have several.
    """
    if labels.multilabel:
        raise ValueError(
            "class_weight must be None for an indicator matrix y: a record of several "
            "classes has no one weight. Choose a threshold for each label."
        )
    known = labels.classes.tolist()
    if isinstance(class_weight, str) and class_weight == "balanced":
        return "balanced"
    if isinstance(class_weight, Mapping):
        for label in class_weight:
            if label not in known:
                raise ValueError(
                    f"class_weight must name classes only, got the key {label!r}. Pass "
                    "keys of the type of the labels."
                )
        given = [class_weight.get(label, 1.0) for label in known]
    elif hasattr(class_weight, "to_dict"):  # its order need not be that of the classes
        raise TypeError(
            "class_weight must be a mapping of classes or an array without their "
            f"names, got {type(class_weight).__name__}. Pass class_weight.to_dict()."
        )
    elif hasattr(class_weight, "__array__") and np.ndim(class_weight) == 1:
        given = np.asarray(class_weight).tolist()
    elif isinstance(class_weight, list | tuple | range):
        given = list(class_weight)
    else:
        raise TypeError(
            "class_weight must be None, 'balanced', a mapping of classes or an array "
            f"of one weight for each, got {class_weight!r}."
        )
    if len(given) != len(known):
        raise ValueError(
            f"class_weight must have {len(known)} entries, one for each class, got "
            f"{len(given)}."
        )
    weights = [check_positive("class_weight", weight) for weight in given]
    if max(weights) > _LARGEST_RATIO * min(weights):
        raise ValueError(
            f"class_weight must have ratios of at most {_LARGEST_RATIO:g}, got "
            f"{max(weights) / min(weights):g}."
        )
    return tuple(weight / max(weights) for weight in weights)


def counts_query(others: Sequence[Query], adjacency: Adjacency) -> Query:
    """Return the query for class counts; ``others`` are the other ones of the fit."""
    bound = replacement.class_counts(adjacency)
    return Query(COUNTS, bound, weight=weight_of(_SHARE, others))


def balanced_weights(counts: Release, least: float) -> NDArray[np.float64]:
    """Return weights in proportion to one over the counts, the largest 1.

    The largest weight is 1, and so those of common classes fall with the smallest
    count: what is learned of every class is what so many records tell. Of a class of
    fewer than ``least`` records nothing is learned under the noise of a fit, and to
    weigh it like the others would only make all as poor: long tails of CIFAR-10 then
    had a lower balanced accuracy than without weights. So counts are lifted to
    ``least``, to twice the stddev of their noise, and to 1. ``least`` is the norm
    of the noise in all that is released of a class, over a tenth of the norm of a row:
    by about as much the mean of a class differs from that of all records.
    """
    floor = max(least, 2.0 * counts.noise_stddev, 1.0)
    found = np.maximum(counts.value, floor)
    return np.asarray(found.min() / found)
