"""What each step of a pipeline will release, before a record is read for it."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import OneToOneFeatureMixin, clone, is_classifier
from sklearn.utils import check_array, get_tags

from privfeat._memory import check_room
from privfeat._messages import without_data, without_warnings
from privfeat._rewording import SPARSE
from privfeat._types import Adjacency, Arithmetic, Unit
from privfeat.core.accounting.plan import ReleasePlan
from privfeat.core.noise.keys import KeyStream
from privfeat.core.shares import shares_of_rho
from privfeat.estimation.inputs import checked
from privfeat.estimation.labels import read_labels
from privfeat.estimation.names import check_names, names_of
from privfeat.exceptions import UnsupportedEventError
from privfeat.pipeline.records import number_of
from privfeat.pipeline.steps import Step
from privfeat.preprocessing import PublicColumns

# Of the rows that a step makes, while the next one is fitted.
_COPIES = 3
# Part of rho of the last private step, where each other one has 1.
LAST_SHARE = 8.0


@dataclass(frozen=True)
class Shared:
    """What all private steps of a pipeline share."""

    whole: ReleasePlan  # of any query, for the whole budget
    shares: Mapping[str, float]  # the rho of each step, by its name
    max_group_size: int | None
    arithmetic: Arithmetic
    seeds: Callable[[], int] | None  # draws a seed for each step of a seeded pipeline

    def give_to(self, step: Step) -> None:
        """Set the part of the budget of a private step, and what neighbours are."""
        rho = self.shares[step.name] if self.whole.private else None
        params = {
            "epsilon": math.inf if rho is None else None,
            "rho": rho,
            "delta": self.whole.delta,
            "adjacency": self.whole.adjacency,
            "arithmetic": self.arithmetic,
            "max_group_size": self.max_group_size,
            "random_state": None if self.seeds is None else self.seeds(),
            "verbose": 0,  # it would show the cost of a part
        }
        known = step.estimator.get_params(deep=False)
        step.estimator.set_params(**{k: v for k, v in params.items() if k in known})


def shared_by(
    pipeline: Any,
    whole: ReleasePlan,
    steps: Sequence[Step],
    keys: KeyStream | None = None,
) -> Shared:
    """Return what all private steps share; raise unless shares are theirs."""
    return Shared(
        whole=whole,
        shares=shares_of_rho(whole, _weights_of(steps, pipeline.shares)),
        max_group_size=pipeline.max_group_size,
        arithmetic=pipeline.arithmetic,
        seeds=keys.draw_integer if keys is not None and keys.seeded else None,
    )


def _weights_of(
    steps: Sequence[Step], shares: Mapping[str, float] | None
) -> dict[str, float]:
    """Return the weight of each private step in the budget, as given or by default."""
    names = [step.name for step in steps if step.private]
    if shares is None:
        return {n: LAST_SHARE if n == names[-1] else 1.0 for n in names}
    if not isinstance(shares, Mapping) or set(shares) != set(names):
        raise ValueError(
            f"shares must have one number for each private step, {names}, got "
            f"{shares!r}."
        )
    return {name: shares[name] for name in names}


@dataclass(frozen=True)
class KnownLabels:
    """The classes of the last step, and whether they were ``read`` from the labels."""

    classes: Any
    multilabel: bool
    read: bool


def labels_of(last: Step, y: Any, *, multilabel: bool = False) -> KnownLabels | None:
    """Return the classes of a classifier at the end, None for another step.

    Those of the step itself, or, where it has none, those of ``y``.
    """
    if not (last.private and is_classifier(last.estimator)):
        return None
    given = last.estimator.classes
    if y is None:
        return KnownLabels(given, multilabel, read=False)
    options = {"accept_sparse": "csr", "dtype": None, "ensure_2d": False}
    found = read_labels(
        checked(check_array, y, **options, input_name="y"),
        given,
        getattr(last.estimator, "max_labels", None),
    )
    read = given is None
    return KnownLabels(found.classes if read else given, found.multilabel, read)


def reads_classes(last: Step, labels: KnownLabels | None) -> bool:
    """Return whether the last step finds the classes in the labels."""
    if labels is not None:
        return labels.read
    return getattr(last.estimator, "classes", ()) is None  # one that counts them


def planned_steps(
    steps: Sequence[Step],
    n_features: int,
    shared: Shared,
    labels: KnownLabels | None,
    *,
    is_sparse: bool = False,
    given: tuple[Any, Any] | None = None,
) -> dict[str, ReleasePlan]:
    """Return the plan of each private step; fit public ones to a row of zeros.

    Gives each step its part of the budget. Nothing is drawn or charged. What a fit is
    ``given``, ``(X, y)``, each step checks as far as its own fit does beforehand.

    TypeError or ValueError if a step refuses a parameter, that many features, sparse
    rows or ``y``; UnsupportedEventError if a step samples records.
    """
    plans, width, behind = {}, n_features, False
    for step in steps:
        if step.private:
            if is_sparse and not get_tags(step.estimator).input_tags.sparse:
                raise TypeError(f"step {step.name!r}: {SPARSE}")
            shared.give_to(step)
            plans[step.name] = _planned(step, width, labels)
            if given is not None:
                with without_warnings():  # its fit warns again
                    step.estimator.check_targets(*given, width)
        behind |= step.private
        if step is not steps[-1]:
            first = step is steps[0]
            width, is_sparse = _after(step, width, first=first, behind=behind)
            if given is not None and not is_sparse:
                made = f"what step {step.name!r} makes of the records"
                n_bytes = _COPIES * 8.0 * width * number_of(given[0])
                check_room(made, n_bytes, "Let it make fewer columns.")
    return plans


def check_step_names(steps: Sequence[Step], X: Any) -> None:
    """Raise ValueError if a step has its columns in another order than it gets them.

    Steps get arrays, and cannot know. Public ones are fitted.
    """
    names = without_data(names_of, X)
    for step in steps:
        if step.private:
            check_names(step.estimator.get_params(deep=False), names)
        if not isinstance(step.estimator, OneToOneFeatureMixin):
            made: Any = ()
            with suppress(Exception):  # it names none
                made = step.estimator.get_feature_names_out(names or None)
            names = list(made)


def _planned(step: Step, width: int, labels: KnownLabels | None) -> ReleasePlan:
    """Return the plan of a private step for rows of ``width`` numbers."""
    sampling = step.estimator.get_params(deep=False).get("sampling_prob", 1.0)
    if sampling != 1.0:
        raise UnsupportedEventError(
            f"sampling_prob must be 1 in step {step.name!r}, got {sampling!r}: what "
            "sampled records cost is no part of rho. Pass 1."
        )
    plan: ReleasePlan
    with without_warnings():  # its fit warns again
        if labels is None or not is_classifier(step.estimator):
            plan = step.estimator.planned(width)
        else:
            known = clone(step.estimator).set_params(classes=labels.classes)
            plan = known.planned(width, multilabel=labels.multilabel)
    return plan


def _after(step: Step, width: int, *, first: bool, behind: bool) -> tuple[int, bool]:
    """Return how many columns a step makes of so many, and whether they are sparse.

    ``behind`` a private step it must take a row of zeros, which stands for a record
    that it refuses: TypeError or ValueError, else after the charge.
    """
    if step.private:
        return int(step.estimator.n_outputs(width)), False
    if isinstance(step.estimator, PublicColumns):
        # not of a row of zeros: 0 may be no category
        return len(step.estimator.get_feature_names_out()), False
    row: Any = np.zeros((1, width))
    if step.reads_tables and not step.declared:  # hashes texts: a row of zeros is none
        params = step.estimator.get_params(deep=False)
        if params.get("input", "content") != "content":  # reads files
            return int(step.estimator.fit([""]).n_features), True
        row = ["a few words"]
    reads = get_tags(step.estimator).input_tags
    if first and step.declared and not reads.two_d_array:
        row = [{}] if reads.dict else [""]
    fitted = step.estimator if step.declared else step.estimator.fit(row)
    # a logarithm of zero; and without warnings, as the fit transforms
    with np.errstate(all="ignore"), without_warnings():
        try:
            made = fitted.transform(row)
        except (TypeError, ValueError):
            if behind or not step.declared:
                raise
            return _told(step)  # 0 is no category, an array has no names
    return int(made.shape[1]), sparse.issparse(made)


def _told(step: Step) -> tuple[int, bool]:
    """Return what a step that was fitted before says of the columns that it makes."""
    try:
        names = step.estimator.get_feature_names_out()
    except (AttributeError, ValueError):
        raise ValueError(
            f"step {step.name!r} must name what it makes, or take zeros, to be planned "
            "without records. Pass transformers that have get_feature_names_out."
        ) from None
    is_sparse = getattr(step.estimator, "sparse_output", False)
    return len(names), bool(getattr(step.estimator, "sparse_output_", is_sparse))


def facts_of(
    steps: Sequence[Step], features: str, adjacency: Adjacency, unit: Unit
) -> tuple[str, ...]:
    """Return what the statement of a pipeline assumes to be known to everyone.

    Beside the facts of its private steps.
    """
    facts = [
        features,
        "the steps, and all constructor parameters but random_state",
        "that all values are finite",
    ]
    for step in steps:
        if step.declared:
            facts.append(
                f"{step.name}: that it was fitted without the records, or for a charge "
                "of its own"
            )
        if not (step.private or step.record_wise):
            facts.append(
                f"{step.name}: that it, which got one record at a time, keeps nothing "
                "of a record for the next"
            )
    if adjacency == "replace_one":
        facts.append(f"the number of {unit}s")
    return tuple(facts)
