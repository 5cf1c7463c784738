"""How a pipeline shows its steps: parameters, names, tags, as scikit-learn's does."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Bunch, get_tags
from sklearn.utils.validation import check_is_fitted


class StepsView(BaseEstimator):
    """Adds the parameters of steps as ``STEP__NAME``, and the steps by their names."""

    steps: Any

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with ``deep`` the steps and theirs as well."""
        params: dict[str, Any] = super().get_params(deep=False)
        if deep:
            for name, step in self._named():
                params[name] = step
                if hasattr(step, "get_params") and not isinstance(step, type):
                    theirs = step.get_params(deep=True).items()
                    params |= {f"{name}__{key}": value for key, value in theirs}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, steps by their names, and theirs as ``STEP__NAME``."""
        if "steps" in params:
            self.steps = params.pop("steps")
        names = [name for name, _ in self._named()]
        if replaced := params.keys() & {*names}:
            self.steps = [
                (name, params.pop(name) if name in replaced else step)
                for name, step in self._named()
            ]
        super().set_params(**params)
        return self

    @property
    def named_steps(self) -> Bunch:
        """The fitted steps by their names; before ``fit``, those given."""
        return Bunch(**dict(self._shown()))

    @property
    def first_step_reads(self) -> bool:
        """Whether the first step is public, so that it, not a search, reads rows."""
        return bool(self._named()) and not hasattr(self._named()[0][1], "planned")

    def __len__(self) -> int:
        """Return the number of steps."""
        return len(self._named())

    def __getitem__(self, step: int | str) -> Any:
        """Return a step by its place or its name, fitted if the pipeline is."""
        if isinstance(step, str):
            return self.named_steps[step]
        return self._shown()[step][1]

    @property
    def last_step(self) -> Any:
        """The last step, fitted if the pipeline is."""
        found = self._shown()
        return found[-1][1] if found else None

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of what the last transformer makes, as each step names it.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns. Default: those that were seen in ``fit``.
        """
        check_is_fitted(self, "steps_")
        names = input_features
        if names is None:
            names = getattr(self, "feature_names_in_", None)
        transforming = [s for _, s in self.steps_ if hasattr(s, "transform")]
        for step in transforming:
            names = step.get_feature_names_out(names)
        return np.asarray(names, dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "steps_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        named = self._named()
        if named and hasattr(named[-1][1], "__sklearn_tags__"):
            first, last = get_tags(named[0][1]), get_tags(named[-1][1])
            tags.estimator_type = last.estimator_type
            tags.classifier_tags = last.classifier_tags
            tags.regressor_tags = last.regressor_tags
            tags.transformer_tags = last.transformer_tags
            tags.target_tags = last.target_tags
            tags.input_tags = first.input_tags
        return tags

    def _shown(self) -> list[tuple[str, Any]]:
        """Return the fitted steps; before ``fit``, those given."""
        return getattr(self, "steps_", None) or self._named()

    def _named(self) -> list[tuple[str, Any]]:
        """Return the steps where they are pairs; `fit` refuses others."""
        steps = self.steps if isinstance(self.steps, list | tuple) else []
        return [s for s in steps if isinstance(s, tuple) and len(s) == 2]
