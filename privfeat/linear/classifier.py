"""The base class of linear classifiers: labels, classes and probabilities."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import column_or_1d

from privfeat._checks import check_int
from privfeat._messages import without_data
from privfeat._types import Loss
from privfeat.core.accounting.calibration import budget_shares
from privfeat.core.accounting.plan import Query, ReleasePlan
from privfeat.core.bounds import replacement
from privfeat.core.noise.gaussian_mechanism import GaussianMechanism
from privfeat.core.noise.release import Release
from privfeat.core.sums.totals import ExactSum
from privfeat.data import LazyFeatures
from privfeat.estimation.inputs import ScoredClassifier
from privfeat.estimation.labels import encode_indicator, encode_labels, is_indicator
from privfeat.linear._center import (
    NAME,
    is_released,
    mean_query,
    public_center,
    release_mean,
)
from privfeat.linear._probabilities import class_probabilities, label_probabilities
from privfeat.linear._rows import BoundedRows
from privfeat.linear._stack import Stack
from privfeat.linear.model import DPLinearModel
from privfeat.linear.problem import LinearProblem, Shape


class DPLinearClassifier(ScoredClassifier, DPLinearModel):
    """A linear classifier, of records with one label or with several."""

    classes: ArrayLike | None = None
    max_labels: int | None = None
    center: bool | ArrayLike = True

    def decision_function(self, X: ArrayLike | LazyFeatures) -> NDArray[np.float64]:
        """Return scores ``Z coef_^T + intercept_`` of scaled and centred rows ``Z``.

        Parameters
        ----------
        X : array-like or LazyFeatures of shape (n_samples, n_features)
            ``Z`` is ``X - center_``. With ``row_scaling="unit"`` rows are divided by
            their norms before ``center_`` is subtracted, and again after that.

        Returns
        -------
        scores : array of shape (n_samples,) or (n_samples, n_classes)
            One dimension for two classes that exclude each other: positive for
            ``classes_[1]``.
        """
        scores = self._scores(X)
        return scores if self.multilabel_ or scores.shape[1] > 1 else scores[:, 0]

    def predict(self, X: ArrayLike | LazyFeatures) -> NDArray[Any]:
        """Return the class with the highest score, of shape (n_samples,).

        After a fit to several labels a record: an indicator matrix of the labels with a
        probability above one half, of shape (n_samples, n_classes).
        """
        scores = self.decision_function(X)
        if self.multilabel_:
            return (self._label_probabilities(scores) > 0.5).astype(np.int64)
        best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: ArrayLike | LazyFeatures) -> NDArray[np.float64]:
        """Return class probabilities, of shape (n_samples, n_classes).

        Notes
        -----
        ``"softmax"``: the softmax of the scores. ``"sigmoid"``: one-vs-rest sigmoids,
        normalized to sum to one. ``"squared"``: the scores estimate label indicators;
        their Euclidean projection on the probability simplex, which never increases
        the Brier score. After a fit to several labels a record, each label has a
        probability of its own: the sigmoid, or the score cut to [0, 1].
        """
        scores = self.decision_function(X)
        if self.multilabel_:
            return self._label_probabilities(scores)
        return class_probabilities(self._loss(multilabel=False), scores)

    def planned(self, n_features: int) -> ReleasePlan:
        """Return what ``fit`` would release of records of one label each, and its cost.

        Nothing is drawn or charged, and no record is needed; ``classes`` is.

        Raises
        ------
        TypeError, ValueError
            If ``fit`` would refuse a parameter, whatever the records.
        UnsupportedEventError
            As for ``fit``.
        """
        self._check_parameters()
        if self.classes is None:
            raise ValueError("classes must be given to plan a fit, got None.")
        # every class once: labels that hold no data
        return self._plan(self._problem(np.asarray(self.classes), n_features).shape)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    @abstractmethod
    def _loss(self, *, multilabel: bool) -> Loss:
        """Return the loss whose probabilities ``predict_proba`` returns."""

    def _label_probabilities(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        return label_probabilities(self._loss(multilabel=True), scores)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.max_labels is not None:
            check_int("max_labels", self.max_labels, low=1)

    def _stack(self, shape: Shape) -> Stack | None:
        """Return what is released instead of `_queries`, if they are stacked."""
        return None

    def _stacked(self, shape: Shape, products: str, factor_norm: float) -> Stack:
        """Return the stack of `_queries`: Gram matrices and ``products``.

        Its scales are such that one noise gives every query its part of rho; that of
        ``products``, whose factors have a norm of at most ``factor_norm``, is 1.
        """
        queries = self._queries(shape)
        mean = [Query(NAME, 1.0)] if is_released(self.center) else []
        shares = budget_shares([*mean, *queries], self.budget_split)
        scales = {q.name: math.sqrt(shares[q.name]) / q.l2_sensitivity for q in queries}
        scales = {name: scale / scales[products] for name, scale in scales.items()}
        bound = replacement.gram_and_products(
            float(self.clip_norm),
            factor_norm,
            scales["gram"],
            scales.get("class_grams", 0.0),
            self.adjacency,
        )
        n_blocks = sum(query.n_blocks for query in queries)
        return Stack(Query(f"{products}_and_gram", bound, n_blocks=n_blocks), scales)

    def _planned_split(self, shape: Shape) -> Mapping[str, float] | None:
        stack = self._stack(shape)
        if self.budget_split is None or stack is None:
            return self.budget_split
        shares = dict(self.budget_split)
        stacked = math.fsum(shares.pop(name) for name in stack.scales)
        return shares | {stack.query.name: stacked}

    def _release(
        self,
        mechanism: GaussianMechanism,
        shape: Shape,
        name: str,
        exact: ExactSum,
        *,
        symmetric: bool = False,
    ) -> Release:
        """Release a sum of `_queries`, alone or as a block of the stack."""
        stack = self._stack(shape)
        if stack is None:
            return mechanism.release(name, exact, symmetric=symmetric)
        return stack.release(mechanism, name, exact, symmetric=symmetric)

    def _all_queries(self, shape: Shape) -> list[Query]:
        stack = self._stack(shape)
        queries = self._queries(shape) if stack is None else [stack.query]
        if not is_released(self.center):
            return queries
        mean = mean_query(
            queries, float(self.clip_norm), self.adjacency, self.row_scaling
        )
        return [mean, *queries]

    def _centred(self, rows: BoundedRows, mechanism: GaussianMechanism) -> BoundedRows:
        if is_released(self.center):
            self.center_ = release_mean(
                rows,
                mechanism,
                clip_norm=float(self.clip_norm),
                row_scaling=self.row_scaling,
            )
        else:
            self.center_ = public_center(
                self.center, self.n_features_in_, self.row_scaling
            )
        return rows.centred(self.center_)

    def _validate(self, X: Any, y: Any) -> tuple[Any, Any]:
        names = without_data(_column_names, y)
        named = len(names) > 1 and all(isinstance(name, str) for name in names)
        if named and self.classes is not None:
            given = np.asarray(self.classes).tolist()
            if names != given:
                raise ValueError(
                    f"classes must be the columns of y in their order, got {given!r} "
                    f"for {names!r}."
                )
        return super()._validate(X, y)

    def _problem(self, y: Any, n_features: int) -> LinearProblem:
        public_center(self.center, n_features, self.row_scaling)
        given = self.classes is not None
        multilabel = is_indicator(y, self.classes)
        if multilabel:
            labels = encode_indicator(y, self.classes, self.max_labels)
        else:
            column = without_data(column_or_1d, y, warn=True)
            labels = encode_labels(column, self.classes)
        n_classes, max_labels = len(labels.classes), labels.codes.shape[1]
        loss = self._loss(multilabel=multilabel)
        binary = n_classes == 2 and loss == "sigmoid" and not multilabel
        constant = self._constant()
        shape = Shape(
            n_outputs=1 if binary else n_classes,
            n_columns=n_features + (constant is not None),
            constant=self._row_radius() * (constant or 0.0),
            loss=loss,
            max_labels=max_labels,
        )
        source = "given" if given else "columns of y" if multilabel else "read from y"
        stack = self._stack(shape)
        return LinearProblem(
            shape=shape,
            n_outputs=shape.n_outputs,
            targets=labels.codes - 1 if binary else labels.codes,
            fitted={"classes_": labels.classes, "multilabel_": multilabel},
            public=(
                f"the set of {n_classes} classes ({source})",
                f"that of a record's labels the first {max_labels} count"
                if multilabel
                else "that all labels are among the classes",
                *(() if stack is None else (stack.fact(),)),
            ),
            classes_read=not given and not multilabel,
        )

    def _rows(
        self,
        features: Any,
        targets: NDArray[Any],
        *,
        kept: NDArray[np.bool_] | None,
        private: bool,
    ) -> BoundedRows:
        return BoundedRows(
            features,
            targets,
            row_scaling=self.row_scaling,
            clip_norm=float(self.clip_norm),
            intercept_scaling=self._constant(),
            kept=kept,
            private=private,
        )

    def _row_radius(self) -> float:
        """Return the norm of the feature part of a row under ``"unit"``, else 1."""
        if self.row_scaling == "clip":
            return 1.0
        return float(self.clip_norm) / float(np.hypot(1.0, self._constant() or 0.0))

    def _initial_coef(self, shape: Shape, intercept_init: float) -> NDArray[np.float64]:
        """Return coefficients of zero with every intercept at ``intercept_init``."""
        coef = np.zeros((shape.n_outputs, shape.n_columns))
        if self.fit_intercept:
            coef[:, -1] = intercept_init / shape.constant
        return coef

    def _store(self, coef: NDArray[np.float64], shape: Shape) -> None:
        """Set ``coef_`` and ``intercept_`` for rows as ``decision_function`` sees them.

        Two classes that exclude each other keep one row: the difference of theirs.
        """
        if len(coef) == 2 and not self.multilabel_:
            coef = coef[1:] - coef[:1]
        n_features = self.n_features_in_
        self.coef_ = coef[:, :n_features] * self._row_radius()
        constant = coef[:, n_features:] * shape.constant
        self.intercept_ = constant.sum(axis=1)


def _column_names(y: Any) -> list[Any]:
    return list(getattr(y, "columns", ()))
