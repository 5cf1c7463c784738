"""Predictions for other rates of the classes than those of the training records."""

from copy import copy
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from privfeat._types import SHIFTED
from privfeat.estimation.bases import params_of_fit
from privfeat.estimation.names import check_classes
from privfeat.linear.classifier import DPLinearClassifier
from privfeat.persistence.written import described, statement_of

C = TypeVar("C")  # a linear classifier of privfeat, or a pipeline that ends with one


def shifted_rates(classifier: C, *, before: ArrayLike, after: ArrayLike) -> C:
    """Return a copy whose probabilities are for other rates of the classes.

    What is public of rates, or of the costs of errors, goes into the intercepts after
    the fit: that costs no budget. The privacy statement says the rates, and of two
    classes the threshold, among what is assumed to be public; so does a report.

    Parameters
    ----------
    classifier : linear classifier of privfeat, or a pipeline that ends with one
        Fitted, to one label a record, by the softmax or, of two classes, the sigmoid.
    before, after : array-like of shape (n_classes,)
        How often each class of ``classes_`` is among the training records, times its
        ``class_weight_`` if there are weights; and how often it is, or shall count,
        where the copy predicts. Finite and > 0; only ratios matter. Both public, or
        released: rates that are counted in private records are neither.

    Returns
    -------
    shifted : a classifier of the same class
        The ``intercept_`` of each class is ``log(after / before)`` higher.

    Raises
    ------
    TypeError, ValueError
        If the classifier has no such probabilities, or rates are not as said.

    Notes
    -----
    Where the features of a class are alike under both rates, this is Bayes' rule for
    the new ones ([1]_, equation 4), and for equal ``after`` the classifier of highest
    balanced accuracy ([2]_). A threshold is the same: for two classes, ``after =
    (before[0], k * before[1])`` predicts the second one from probability ``1 / (1 +
    k)`` on, best where a record of it that is missed costs as much as ``k`` false
    alarms. Other than weights of the loss, this takes no signal from common classes,
    and so loses nothing to the noise.

    References
    ----------
    .. [1] Saerens, Latinne & Decaestecker. Adjusting the Outputs of a Classifier to New
       a Priori Probabilities. Neural Computation 2002.
    .. [2] Menon et al. Long-tail Learning via Logit Adjustment. ICLR 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from privfeat import DPFC
    >>> X, y = np.random.default_rng(0).normal(size=(500, 3)), np.arange(500) < 10
    >>> clf = DPFC(epsilon=8, classes=[False, True]).fit(X, y)
    >>> alert = shifted_rates(clf, before=[0.98, 0.02], after=[0.5, 0.5])
    >>> bool(alert.predict_proba(X)[:, 1].mean() > clf.predict_proba(X)[:, 1].mean())
    True
    """
    if hasattr(classifier, "steps"):
        pipeline: C = _of_pipeline(classifier, before, after)
        return pipeline
    if not isinstance(classifier, DPLinearClassifier):
        raise TypeError(
            "classifier must be a linear classifier of privfeat, got "
            f"{type(classifier).__name__}."
        )
    check_is_fitted(classifier)
    n_classes = len(classifier.classes_)
    loss = params_of_fit(classifier).get("loss", "squared")
    if classifier.multilabel_ or not (
        loss in ("auto", "softmax") or (loss == "sigmoid" and n_classes == 2)
    ):
        raise ValueError(
            "classifier must be fitted to one label a record, by the softmax or, of "
            f"two classes, the sigmoid, got loss={loss!r}."
        )
    for name, rates in (("before", before), ("after", after)):
        check_classes(name, rates, classifier.classes_.tolist())
    shift = _logarithms("after", after, n_classes)
    shift -= _logarithms("before", before, n_classes)
    if n_classes == 2:
        shift = shift[1:] - shift[:1]
    shifted = copy(classifier)
    shifted.intercept_ = classifier.intercept_ + shift
    _state(shifted, _in_words(before, after))
    _keep_names(shifted, classifier)
    return shifted


def _of_pipeline(pipeline: Any, before: ArrayLike, after: ArrayLike) -> Any:
    """Return a copy of a fitted pipeline whose last step is shifted."""
    shifted = copy(pipeline)
    fitted = "steps_" if hasattr(pipeline, "steps_") else "steps"
    *others, (name, last) = getattr(pipeline, fitted)
    last = shifted_rates(last, before=before, after=after)
    setattr(shifted, fitted, [*others, (name, last)])
    if hasattr(shifted, "privacy_"):  # that of all private steps
        _state(shifted, _in_words(before, after))
    _keep_names(shifted, pipeline)
    return shifted


def _state(shifted: Any, fact: str) -> None:
    """Add a fact to what the statement of a copy takes to be public."""
    stated = shifted.privacy_
    shifted.privacy_ = replace(stated, public=(*stated.public, fact))


def _keep_names(shifted: Any, classifier: Any) -> None:
    """Let a copy have the names that its classifier was loaded with, if it still is."""
    known = described(classifier)
    if known is not None:
        shifted.described_ = replace(known, fit=statement_of(shifted))


def _in_words(before: ArrayLike, after: ArrayLike) -> str:
    """Return the shift of rates that were checked, as a statement says it."""
    old, new = np.asarray(before, np.float64), np.asarray(after, np.float64)
    told = [", ".join(f"{rate:.6g}" for rate in rates) for rates in (new, old)]
    fact = f"{SHIFTED}: {told[0]} for {told[1]}"
    if len(old) > 2:
        return fact
    threshold = 1.0 / (1.0 + new[1] * old[0] / (new[0] * old[1]))
    where = f"where its probability was {threshold:.6g} or more"
    return f"{fact}, which predicts the second class {where}"


def _logarithms(name: str, rates: ArrayLike, n_classes: int) -> NDArray[np.float64]:
    """Return the logarithms of checked rates, of shape (n_classes,)."""
    values = np.asarray(rates)
    if values.dtype.kind not in "iuf" or values.shape != (n_classes,):
        raise ValueError(
            f"{name} must hold {n_classes} numbers, one for each class, got {rates!r}."
        )
    if not np.all((values > 0) & np.isfinite(values)):
        raise ValueError(f"{name} must be finite and > 0, got {rates!r}.")
    return np.log(values.astype(np.float64))
