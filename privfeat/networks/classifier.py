"""DPSGDClassifier: a network for classes."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted

from privfeat._messages import array_of
from privfeat.estimation.bases import ScoredClassifier
from privfeat.estimation.labels import Problem, encode_labels
from privfeat.networks.docstrings import document
from privfeat.networks.engine import losses
from privfeat.networks.model import DPSGDModel
from privfeat.networks.parameters import Model

Vote = Literal["mean", "majority"]


@document
class DPSGDClassifier(ScoredClassifier, DPSGDModel):
    """A network trained by DP-SGD to tell classes of images, with the softmax loss.

    Parameters
    ----------
    {parameters}
    classes : array-like, optional
        Every possible label. None, the default as in scikit-learn, reads them from
        ``y``, treats them as public and warns.
    vote : {{"mean", "majority"}}, default="mean"
        What ``n_votes`` views of a record predict: the class of the highest mean score,
        or the class of most views, whose probabilities are then shares of the views
        (Sander et al. 2023, Section 4.2). Default: mean, since a majority was 0.25
        points below at four views and 0.30 at eight (RESULTS, *Figures of the papers on
        small sets*).

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    {attributes}

    Notes
    -----
    {guarantees}

    **Source.** Abadi et al. 2016, Algorithm 1, with the denominators of [1]_ and the
    per-record norms of Goodfellow 2015. With groups, [2]_, Algorithm 1.

    References
    ----------
    .. [1] Kurakin et al. Toward Training at ImageNet Scale with Differential Privacy.
       2022.
    .. [2] McMahan et al. Learning Differentially Private Recurrent Language Models.
       2018.

    Examples
    --------
    >>> import numpy as np
    >>> from privfeat import DPSGDClassifier
    >>> X = np.repeat(np.arange(2), 400)[:, None] + np.zeros((800, 3))
    >>> clf = DPSGDClassifier(
    ...     model="mlp",
    ...     noise_multiplier=1.2,
    ...     classes=[0, 1],
    ...     n_iter=30,
    ...     learning_rate=0.01,
    ... ).fit(X, X[:, 0].astype(int))
    >>> round(clf.privacy_.epsilon, 1)
    9.6
    """

    model: Model = "simpleVGG-32(2)-64(2)-128(2)-128"
    classes: ArrayLike | None = None
    vote: Vote = "mean"
    _loss = staticmethod(losses.cross_entropy)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return scores, (n_samples, n_classes); for two classes their difference."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class with the highest score, of shape (n_samples,)."""
        check_is_fitted(self, "parameters_")
        return np.asarray(self.classes_[self._scores(X).argmax(axis=1)])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the softmax of the scores, of shape (n_samples, n_classes)."""
        return np.asarray(softmax(self._scores(X), axis=1))

    def _voting(self) -> Callable[..., Any]:
        self._check_vote()
        return partial(super()._voting(), majority=self.vote == "majority")

    def _check_vote(self) -> None:
        if self.vote not in get_args(Vote):
            raise ValueError(f"vote must be 'mean' or 'majority', got {self.vote!r}.")

    def _problem(self, y: Any) -> Problem:
        """Return codes of the classes, (n_samples,), the classes and public facts."""
        self._check_vote()
        labels = array_of(y)
        if labels.ndim != 1:
            raise ValueError("y must be a 1d array, got another shape.")
        encoded, read = encode_labels(labels, self.classes), self.classes is None
        n_outputs, source = len(encoded.classes), "read from y" if read else "given"
        return Problem(
            targets=encoded.codes[:, 0],
            n_outputs=n_outputs,
            fitted={"classes_": encoded.classes},
            public=(
                f"the set of {n_outputs} classes ({source})",
                "that all labels are among the classes",
            ),
            classes_read=read,
        )
