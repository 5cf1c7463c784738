"""What a fitted model is made of, for files of other formats, and what is said."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from privfeat._checks import check_class_names
from privfeat._version import __version__
from privfeat._warnings import warn
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.estimation.bases import params_of_fit
from privfeat.estimation.predictor import LinearPredictor
from privfeat.persistence import is_ours
from privfeat.persistence.pipelines import is_pipeline, written_pipeline
from privfeat.persistence.saved_models import as_predictor
from privfeat.persistence.written import described, written_model
from privfeat.recalibration import TemperatureScaling


@dataclass(frozen=True)
class Parts:
    """A model taken apart."""

    steps: tuple[Any, ...]  # transformers, those of a pipeline, in their order
    model: Any  # the last step, fitted
    # by which log probabilities are divided; 1 without `TemperatureScaling`
    temperature: float
    statements: dict[str, Any]  # by what they are of, as JSON has them
    # of a model that was loaded, those that it was saved with
    class_names: Sequence[str] | None = None

    @property
    def names(self) -> list[str]:
        """The classes of all parts, in the order in which they are applied."""
        scaled = ["TemperatureScaling"] if self.temperature != 1.0 else []
        return [type(part).__name__ for part in (*self.steps, self.model)] + scaled

    def warn_of_exposed(self) -> None:
        """Warn of each statement that is not private."""
        for name, said in self.statements.items():
            what = "a model" if name == "privacy" else "a temperature"
            warn_of_exposed(what, PrivacyStatement.from_json(json.dumps(said)))

    def metadata(self, class_names: Sequence[str] | None) -> dict[str, str]:
        """Return what stands beside the numbers of a model that leaves.

        The statements, the classes of the parts, the version, and names of classes,
        those that the model was saved with if None are given: no parameter, none of
        which the numbers need. TypeError or ValueError as `check_class_names`.
        """
        if class_names is None:
            class_names = self.class_names
        found = {
            "privfeat_version": __version__,
            "estimator": ", ".join(self.names),
            **{name: json.dumps(said) for name, said in self.statements.items()},
        }
        if class_names is not None:
            n_classes = len(getattr(self.model, "classes_", ()))
            named = check_class_names(class_names, n_classes)
            found["class_names"] = json.dumps(named)
        return found


def warn_of_exposed(what: str, statement: PrivacyStatement) -> None:
    """Warn of what leaves whose statement has no finite epsilon, or noise of a seed.

    ``what`` has its article, such as "a model".
    """
    if not statement.private:
        warn(
            f"{what} that leaves should have a finite epsilon and no random_state, got "
            f"epsilon={statement.epsilon!r}, seeded={statement.seeded!r}. Let it leave "
            "only if its records are public."
        )


def predictor_of(fitted: Any) -> LinearPredictor:
    """Return a fitted linear estimator as the numbers that predictions need."""
    arrays = {
        name: np.asarray(getattr(fitted, name))
        for name in ("coef_", "intercept_", "center_", "classes_")
        if hasattr(fitted, name)
    }
    counts = {"multilabel_": getattr(fitted, "multilabel_", False)}
    params = params_of_fit(fitted)
    return as_predictor(type(fitted).__name__, params, arrays, counts)


def parts_of(model: Any) -> Parts:
    """Return the parts of a fitted model of privfeat.

    TypeError if it is of another class, or a step of it is; ValueError if a pipeline
    has no statement as a whole; NotFittedError of scikit-learn if it is not fitted.
    """
    if type(model) is TemperatureScaling:
        check_is_fitted(model, "temperature_")
        inner = parts_of(model.estimator)
        if inner.temperature != 1.0:
            raise TypeError("a model must be scaled once to be exported, got twice.")
        told = dict(inner.statements)
        if (statement := getattr(model, "privacy_", None)) is not None:
            told["privacy_of_temperature"] = json.loads(statement.to_json())
        scale = float(model.temperature_)
        return replace(inner, temperature=scale, statements=told)
    known = described(model)
    names = known.class_names if known else None
    if is_pipeline(model):
        named = getattr(model, "steps_", model.steps)  # those that are fitted
        *steps, last = (step for _, step in named)
        if not is_ours(last):
            raise TypeError(
                "the last step of a pipeline must be an estimator of privfeat to be "
                f"exported, got {type(last).__name__}."
            )
        told = {"privacy": written_pipeline(model).entry["privacy"]}
        return Parts(tuple(steps), last, 1.0, told, names)
    if not is_ours(model):
        raise TypeError(
            "model must be a fitted estimator of privfeat, a Pipeline of its steps, or "
            f"TemperatureScaling of one, to be exported, got {type(model).__name__}."
        )
    told = {"privacy": written_model(model).entry["privacy"]}
    return Parts((), model, 1.0, told, names)
