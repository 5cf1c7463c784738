"""The base class of linear classifiers: labels, classes and probabilities."""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from privfeat._types import Loss, LossOption
from privfeat.core.accounting.plan import ReleasePlan
from privfeat.core.noise.release import Release
from privfeat.data import LazyFeatures
from privfeat.estimation.bases import ScoredClassifier, with_params_of_fit
from privfeat.estimation.labels import read_labels
from privfeat.estimation.names import check_own_order
from privfeat.estimation.predictor import (
    best_classes,
    class_probabilities,
    label_probabilities,
)
from privfeat.estimation.rows import MEAN
from privfeat.linear.model import DPLinearModel
from privfeat.linear.parameters.prior import read_prior
from privfeat.linear.parameters.public import read_public
from privfeat.linear.parameters.ranges import GradientClips, check_clips
from privfeat.linear.parameters.weights import COUNTS, class_weights, counts_query
from privfeat.linear.problem import (
    LinearProblem,
    Shape,
    mean_query,
    public_center,
    stack_of,
)

if TYPE_CHECKING:
    from privfeat.core.noise.gaussian_mechanism import GaussianMechanism
    from privfeat.core.sums.totals import ExactSum
    from privfeat.estimation.rows.bounded import BoundedRows


class DPLinearClassifier(ScoredClassifier, DPLinearModel):
    """A linear classifier, of records with one label or with several."""

    classes: ArrayLike | None = None
    max_labels: int | None = None
    center: bool | ArrayLike = True

    _sums_sparse_rows: ClassVar[bool] = False
    _gradient_clips: ClassVar[GradientClips] = GradientClips()
    _few_columns: ClassVar[str] = "Use DPAdamLinear, which needs no such matrix."

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

    @with_params_of_fit
    def predict(self, X: ArrayLike | LazyFeatures) -> NDArray[Any]:
        """Return the class with the highest score, of shape (n_samples,).

        After a fit to several labels a record: an indicator matrix of the labels with a
        probability above one half, of shape (n_samples, n_classes).
        """
        scores = self.decision_function(X)
        if self.multilabel_:
            return (self._label_probabilities(scores) > 0.5).astype(np.int64)
        return best_classes(scores, self.classes_)

    @with_params_of_fit
    def predict_proba(self, X: ArrayLike | LazyFeatures) -> NDArray[np.float64]:
        """Return class probabilities, of shape (n_samples, n_classes).

        Notes
        -----
        ``"softmax"``: the softmax of the scores. ``"sigmoid"``: one-vs-rest sigmoids,
        normalized to sum to one. ``"squared"``: the scores estimate label indicators;
        their Euclidean projection on the probability simplex, which never increases
        the Brier score. After a fit to several labels a record: of each label by
        itself, the sigmoid, or the score cut to [0, 1].
        """
        scores = self.decision_function(X)
        if self.multilabel_:
            return self._label_probabilities(scores)
        return class_probabilities(self._loss(multilabel=False), scores)

    def planned(self, n_features: int, *, multilabel: bool = False) -> ReleasePlan:
        """Return what ``fit`` would release, and its cost.

        Nothing is drawn or charged, and no record is needed; ``classes`` is.

        Parameters
        ----------
        n_features : int
        multilabel : bool
            Whether ``y`` will be an indicator matrix, or one label for each record.

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
        classes = np.asarray(self.classes)
        labels = np.eye(len(classes)) if multilabel else classes
        return self._plan(self._problem(labels, n_features))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        centred = not isinstance(self.center, bool | np.bool_) or bool(self.center)
        tags.input_tags.sparse = self._sums_sparse_rows and not centred
        return tags

    def _loss(self, *, multilabel: bool) -> Loss:
        """Return the loss of the scores: of the parameter ``loss``, if there is one."""
        loss: LossOption = getattr(self, "loss", "auto")
        if loss == "softmax" and multilabel:
            raise ValueError(
                "loss must not be 'softmax' for an indicator matrix y, got 'softmax'. "
                "Pass 'auto' or 'sigmoid'."
            )
        if loss != "auto":
            return loss
        return "sigmoid" if multilabel else "softmax"

    @property
    def _gradient_clip(self) -> float:
        if (given := getattr(self, "gradient_clip_norm", None)) is not None:
            return float(given)
        alone = self.row_scaling == "unit" and int(self.max_group_size or 1) == 1
        clips = self._gradient_clips
        return clips.of_unit_rows if alone else clips.of_others

    def _products(self, shape: Shape) -> tuple[str, float] | None:
        """Return which of `_queries` is released in one stack with Gram matrices.

        And the largest norm of its factors; None if each is released by itself.
        """
        return None

    def _label_probabilities(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        return label_probabilities(self._loss(multilabel=True), scores)

    def _problem(self, y: Any, n_features: int) -> LinearProblem:
        """Return targets, sizes, queries and public facts, from checked labels."""
        labels = read_labels(y, self.classes, self.max_labels)
        n_classes, max_labels = len(labels.classes), labels.codes.shape[1]
        loss = self._loss(multilabel=labels.multilabel)
        binary = n_classes == 2 and loss == "sigmoid" and not labels.multilabel
        constant = float(self.intercept_scaling) if self.fit_intercept else 0.0
        radius = 1.0
        if self.row_scaling == "unit":
            radius = float(self.clip_norm) / float(np.hypot(1.0, constant))
        for name in ("class_weight", "prior"):
            if (given := getattr(self, name, None)) is not None:
                check_own_order(name, given, self.classes, labels.classes.tolist())
        weights = getattr(self, "class_weight", None)
        if weights is not None:
            weights = class_weights(weights, labels)
        if binary and isinstance(weights, tuple):
            weights = weights[::-1]  # label -1, the first class, comes last
        n_outputs = 1 if binary else n_classes
        prior, public = getattr(self, "prior", None), getattr(self, "public", None)
        if prior is not None:
            prior = read_prior(
                prior,
                classes=labels.classes,
                n_features=n_features,
                n_outputs=n_outputs,
                exclusive=not labels.multilabel,
            )
        shape = Shape(
            n_outputs=n_outputs,
            n_columns=n_features + bool(self.fit_intercept),
            constant=radius * constant,
            loss=loss,
            max_labels=max_labels,
            radius=radius,
            class_weight=weights,
            gradient_clip=self._gradient_clip,
            prior=prior,
            public=None if public is None else read_public(self, n_features),
        )
        known: tuple[str, ...] = (
            f"that of a record's labels the first {max_labels} count"
            if labels.multilabel
            else "that all labels are among the classes",
        )
        released = isinstance(self.center, bool | np.bool_) and bool(self.center)
        queries, split = self._queries(shape), self.budget_split
        clips_users = self._clips_users()
        if clips_users:
            check_clips(self, queries, shape)
        if (products := self._products(shape)) is not None:
            others = [MEAN] * released + [COUNTS] * (weights == "balanced")
            stack = stack_of(
                queries,
                *products,
                others,
                clip_norm=float(self.clip_norm),
                adjacency=self.adjacency,
                budget_split=split,
            )
            known += (stack.fact,)
            shape, queries = replace(shape, stack=stack), [stack.query]
            split = stack.budget_split(split)
        if weights == "balanced":
            queries = [counts_query(queries, self.adjacency), *queries]
        if released:
            norm, scaling = float(self.clip_norm), self.row_scaling
            scaling = "clip" if clips_users else scaling
            queries = [mean_query(queries, norm, self.adjacency, scaling), *queries]
        source = "read from y" if self.classes is None else "given"
        if labels.multilabel and self.classes is None:
            source = "columns of y"
        return LinearProblem(
            targets=labels.codes - 1 if binary else labels.codes,
            n_outputs=shape.n_outputs,
            fitted={"classes_": labels.classes, "multilabel_": labels.multilabel},
            public=(f"the set of {n_classes} classes ({source})", *known),
            classes_read=self.classes is None,
            shape=shape,
            queries=queries,
            budget_split=split,
            bounded=partial(
                _bounded_rows,
                row_scaling=self.row_scaling,
                clip_norm=float(self.clip_norm),
                intercept_scaling=constant if self.fit_intercept else None,
            ),
            center=None
            if released
            else public_center(self.center, n_features, self.row_scaling),
        )

    def _release(
        self,
        mechanism: "GaussianMechanism",
        shape: Shape,
        name: str,
        exact: "ExactSum",
        *,
        symmetric: bool = False,
    ) -> Release:
        """Release a sum of `_queries`, by itself or as a scaled block of the stack."""
        if shape.stack is None:
            return mechanism.release(name, exact, symmetric=symmetric)
        scale = shape.stack.scales[name]
        block = mechanism.release(
            shape.stack.query.name, exact.scaled(scale), symmetric=symmetric
        )
        return block.unscaled(scale, name)

    def _store(self, coef: NDArray[np.float64], shape: Shape) -> None:
        """Set ``coef_`` and ``intercept_`` for rows as ``decision_function`` sees them.

        Two classes that exclude each other keep one row: the difference of theirs.
        """
        if len(coef) == 2 and not self.multilabel_:
            coef = coef[1:] - coef[:1]
        n_features = self.n_features_in_
        self.coef_ = coef[:, :n_features] * shape.radius
        constant = coef[:, n_features:] * shape.constant
        self.intercept_ = constant.sum(axis=1)


def _bounded_rows(features: Any, labels: Any, **options: Any) -> "BoundedRows":
    """Return the rows of a fit, sparse if ``features`` are."""
    # these import JAX, for fits alone
    if issparse(features):
        from privfeat.estimation.rows.sparse import SparseRows

        return SparseRows(features, labels, **options)
    from privfeat.estimation.rows.bounded import BoundedRows

    return BoundedRows(features, labels, **options)
