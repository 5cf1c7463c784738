"""What cross-validation releases of the predictions in all folds, and what it says."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfeat._messages import array_of, without_data
from privfeat._types import Adjacency, Unit
from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.plan import Query, ReleasePlan
from privfeat.core.bounds.replacement import class_counts
from privfeat.core.noise.keys import KeyStream
from privfeat.core.private_fit import private_fit
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.core.sums.totals import ExactSum
from privfeat.estimation.labels import encode_labels
from privfeat.metrics.intervals import Estimate, Width, proportion
from privfeat.metrics.predictions import codes_of, numbers_of, record_by_record
from privfeat.metrics.regression import checked_bounds, evaluation_of_sums
from privfeat.metrics.tables import errors_query, exact_errors
from privfeat.selection.inputs import classes_name


@dataclass(frozen=True)
class CrossValidation:
    """What cross-validation found; every figure is released.

    Attributes
    ----------
    scores : Estimate of arrays of shape (n_splits,)
        Accuracy in each fold, or R squared, with its interval; NaN where the noise
        hides it.
    accuracy : Estimate or None
        Of a classifier: accuracy in all folds together, with its interval.
    privacy : PrivacyStatement
        The cost of all fits and scores.
    r2 : Estimate or None
        Of a regressor: R squared in all folds together, with its interval.
    """

    scores: Estimate
    accuracy: Estimate | None
    privacy: PrivacyStatement
    r2: Estimate | None = None

    def __str__(self) -> str:
        """Return the figures and their cost, for people."""
        name = "R squared" if self.accuracy is None else "accuracy"
        whole = self.r2 if self.accuracy is None else self.accuracy
        folds = [f"  fold {i}: {one}" for i, one in enumerate(self.scores.each())]
        return "\n".join([f"{name}: {whole}", *folds, str(self.privacy)])


class Accuracies:
    """Numbers of records that were predicted right, and wrong, in each fold."""

    def __init__(self, estimator: Any, labels: Any) -> None:
        self._name = classes_name(estimator)
        given = estimator.get_params()[self._name]
        self.read = given is None
        self._classes = np.asarray(encode_labels(labels, given).classes)
        self.targets = codes_of("y", array_of(labels), self._classes)
        source = "read from y" if self.read else "given"
        self.public = (
            f"the set of {len(self._classes)} classes ({source})",
            "that all values are finite and all labels are among the classes",
        )
        self.params = {self._name: self._classes}

    def query(self, adjacency: Adjacency) -> Query:
        """Return the query: a record is in one cell of one fold."""
        return Query("outcomes", class_counts(adjacency))

    def exact(
        self, fitted: Any, rows: Any, codes: Any, counted: NDArray[np.bool_]
    ) -> ExactSum:
        """Return the numbers of one fold, of records that count."""

        def shorten(predicted: Any) -> NDArray[np.float64]:
            codes = codes_of("predictions", predicted, self._classes)
            return np.asarray(codes, np.float64)

        found = _predicted(fitted, rows, len(codes), shorten) == codes
        cells = np.array([np.sum(~found & counted), np.sum(found & counted)], np.int64)
        # on a fine grid, where the exact mode adds next to nothing to the noise
        return ExactSum(cells * 2**20, 2.0**-20)

    def found(
        self, noisy: NDArray[np.float64], stddev: float, width: Width, privacy: Any
    ) -> CrossValidation:
        """Return what the released numbers say."""
        (no, yes), variance = noisy.T, stddev**2
        both = len(noisy) * variance
        return CrossValidation(
            proportion(yes, no, (variance, variance, 0.0), width),
            proportion(yes.sum(), no.sum(), (both, both, 0.0), width),
            privacy,
        )


class Errors:
    """Sums of powers of errors and targets in each fold."""

    read = False

    def __init__(self, estimator: Any, targets: Any, confidence: float) -> None:
        last = getattr(estimator, "last_step", estimator)
        bounds = getattr(last, "target_bounds", None)
        if bounds is None:
            raise ValueError(
                "target_bounds must be given in the regressor that is validated, got "
                "None. Pass the lowest and the highest target, known to everyone."
            )
        self.bounds = checked_bounds(bounds)
        self._confidence = confidence
        self.targets = numbers_of(targets)
        self.public = ("that all values are finite",)
        self.params: dict[str, Any] = {}

    def query(self, adjacency: Adjacency) -> Query:
        """Return the query: a record adds to the sums of one fold."""
        return errors_query(adjacency)

    def exact(
        self, fitted: Any, rows: Any, targets: Any, counted: NDArray[np.bool_]
    ) -> ExactSum:
        """Return the sums of one fold, of records that count."""
        found = _predicted(fitted, rows, len(targets), numbers_of)
        return exact_errors(targets, found, self.bounds, counted)

    def found(
        self, noisy: NDArray[np.float64], stddev: float, width: Width, privacy: Any
    ) -> CrossValidation:
        """Return what the released sums say."""

        def r2_of(sums: NDArray[np.float64], stddev: float) -> Estimate:
            made = self.bounds, self._confidence, width.cluster, privacy
            return evaluation_of_sums(sums, stddev, *made).r2

        folds = [r2_of(sums, stddev) for sums in noisy]
        ends = [
            np.array([getattr(one, end) for one in folds])
            for end in ("value", "low", "high")
        ]
        whole = r2_of(noisy.sum(axis=0), stddev * float(np.sqrt(len(noisy))))
        return CrossValidation(Estimate(*ends), None, privacy, whole)


class ScoreRelease:
    """The last step: one release of the sums of all folds."""

    def __init__(
        self, query: Query, arithmetic: Any, budget: dict[str, Any], whole: ReleasePlan
    ) -> None:
        self.plan = plan_releases(
            [query], **budget, delta=whole.delta, adjacency=whole.adjacency
        )
        self.ledger: Any = None
        self.arithmetic, self._name = arithmetic, query.name

    def release(
        self, part: Any, folds: list[ExactSum], unit: Unit, seed: int | None
    ) -> tuple[NDArray[np.float64], float]:
        """Return the noisy sums of each fold, and the deviation of their noise."""
        self.ledger = part
        fit = private_fit(
            self,
            self.plan,
            KeyStream(seed),
            public=(),
            n_units=0,
            forget=(),
            unit=unit,
            arithmetic=self.arithmetic,
        )
        exact = ExactSum(np.stack([one.total for one in folds]), folds[0].grid_step)
        with fit.drawing() as mechanism:
            found = mechanism.release(self._name, exact)
        return found.value, float(found.noise_stddev)


def _predicted(fitted: Any, rows: Any, n_rows: int, shorten: Any) -> NDArray[Any]:
    """Return what is predicted of each record, each by itself."""
    if not n_rows:
        return np.zeros(0)
    return record_by_record(fitted, "predict", rows, shorten, charged=True)


def chosen(rows: Any, places: NDArray[np.int64]) -> Any:
    """Return these rows of an array or a table."""
    if hasattr(rows, "iloc"):
        return without_data(lambda: rows.iloc[places])
    return rows[places]
