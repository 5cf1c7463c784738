"""DPClassCounts: how many records there are of each class."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length

from privfeat._messages import array_of, without_data
from privfeat.core.accounting.plan import Query
from privfeat.core.bounds import replacement
from privfeat.core.noise.gaussian_mechanism import GaussianMechanism
from privfeat.core.sums.confidence import BOX_STEP, exact_class_counts
from privfeat.estimation.labels import read_labels
from privfeat.preprocessing.private import PrivateStep, document


@document
class DPClassCounts(PrivateStep):
    """Count the records of each class, privately.

    Parameters
    ----------
    classes : array-like of shape (n_classes,), optional
        All labels that there can be: **public**, at least two. None, the default as in
        scikit-learn, reads them from ``y``, and warns: a rare label would show.
    {budget}

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Ascending.
    counts_ : float64 array of shape (n_classes,)
        With noise: not whole, and below 0 perhaps.
    class_prior_ : float64 array of shape (n_classes,)
        Their parts of the sum, of what is above 0; equal parts if nothing is.
    privacy_ : PrivacyStatement

    Notes
    -----
    **Guarantee.** One release, ``class_counts``, of sensitivity 1, and ``sqrt(2)``
    under replace-one (`privfeat.core.bounds.replacement.class_counts`); with ``groups``
    ``max_group_size`` times that. The noise in one count has a standard deviation of
    ``noise_multiplier`` times it, however many classes there are: at epsilon 1 and
    delta 1e-5 about 4 records.

    **Public.** ``classes``, that all labels are among them, all parameters but
    ``random_state``; under replace-one the number of records.

    {unprotected}

    Examples
    --------
    >>> from privfeat.preprocessing import DPClassCounts
    >>> y = ["ill"] * 300 + ["well"] * 700
    >>> counts = DPClassCounts(epsilon=1, classes=["ill", "well"])
    >>> counts.fit(None, y).class_prior_.round(1).tolist()
    [0.3, 0.7]
    """

    classes: ArrayLike | None = None

    _learned: ClassVar[tuple[str, ...]] = ("classes_", "counts_", "class_prior_")

    def _queries(self, n_features: int) -> list[Query]:
        return [Query("class_counts", replacement.class_counts(self.adjacency))]

    def _grid_step(self, n_features: int, name: str) -> float:
        return BOX_STEP

    def _reads_classes(self) -> bool:
        return self.classes is None

    def _facts(self) -> Sequence[str]:
        source = "read from y" if self.classes is None else "given"
        return [f"the set of classes ({source})", "that all labels are among them"]

    def check_targets(self, X: Any, y: Any, n_features: int) -> None:
        """Raise what ``fit`` would refuse of ``y``."""
        self._records(None, y)

    def _records(self, X: Any, y: Any) -> tuple[Any, int]:
        """Return codes, (n_samples,), with the classes, and the number of records."""
        if y is None:
            raise ValueError("fit requires y to be passed, but the target y is None.")
        column = array_of(y)
        if X is not None:
            without_data(check_consistent_length, X, column)
        labels = read_labels(column, self.classes, None)
        if labels.multilabel:
            raise ValueError("y must hold one label a record, got several columns.")
        return (labels.codes[:, 0], labels.classes), len(column)

    def _learn(
        self, mechanism: GaussianMechanism, records: Any, counted: NDArray[np.bool_]
    ) -> None:
        """Release the counts of the classes, and set them and their shares."""
        codes, classes = records
        exact = exact_class_counts(codes, counted, len(classes))
        counts = mechanism.release("class_counts", exact).value
        kept = np.maximum(counts, 0.0)
        self.classes_, self.counts_ = classes, counts
        equal = np.full(len(counts), 1.0 / len(counts))
        self.class_prior_ = kept / kept.sum() if kept.any() else equal

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that labels are needed, and nothing else is read."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.no_validation = True
        tags.input_tags.sparse = True
        return tags
