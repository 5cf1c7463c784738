"""Whether a fit learns what it must not: random labels, or the pattern of one user."""

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfeat._checks import check_choice, check_int, require
from privfeat.audit.copies import values_of_fits
from privfeat.audit.random_numbers import Generator
from privfeat.audit.sanity_limits import chance_limit, mean_limit


@dataclass(frozen=True)
class SanityResult:
    """Outcome of a test.

    Attributes
    ----------
    name : str
    values : tuple of float
        One for each fit, in [0, 1].
    limit : float
        What their mean is compared with.
    chance : float
        What a fit without any information reaches.
    must_stay_below : bool
        Whether the mean must be at most, or else at least, ``limit``.
    """

    name: str
    values: tuple[float, ...]
    limit: float
    chance: float
    must_stay_below: bool = True

    @property
    def mean(self) -> float:
        """Mean of the values."""
        return sum(self.values) / len(self.values)

    @property
    def margin(self) -> float:
        """How far the mean is on the good side of ``limit``; negative on the other."""
        distance = self.limit - self.mean
        return distance if self.must_stay_below else -distance

    @property
    def passed(self) -> bool:
        """Whether the mean is on the good side of ``limit``."""
        return self.margin >= 0.0

    def __str__(self) -> str:
        """Return one line."""
        side = "most" if self.must_stay_below else "least"
        return (
            f"{self._title()}, learned {self.mean:.3f}, must be at {side} "
            f"{self.limit:.3f} (margin {self.margin:+.3f}, chance {self.chance:.3f})"
        )

    def _title(self) -> str:
        return f"{self.name}: {'pass' if self.passed else 'FAIL'}"

    def plot(self) -> bytes:
        """Return a PNG: the value of each fit, with limit and chance.

        Raises
        ------
        ImportError
            If matplotlib is missing.
        """
        require("a figure", "matplotlib", extra="plot")
        from matplotlib.figure import Figure

        figure = Figure(figsize=(5.0, 3.2), layout="constrained")
        axes = figure.add_subplot()
        colour = "#0072B2" if self.passed else "#D55E00"
        axes.plot(range(1, len(self.values) + 1), self.values, "o", color=colour)
        axes.axhline(self.limit, color="black", linewidth=1, label="limit")
        axes.axhline(self.chance, color="#555555", linestyle=":", label="chance")
        axes.set(ylim=(-0.03, 1.03), xlabel="fit", ylabel="rate")
        axes.set_title(self._title(), loc="left")
        axes.legend(frameon=False)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=120)
        return buffer.getvalue()


def random_label_test(
    estimator: Any,
    *,
    n_samples: int = 100,
    n_features: int | tuple[int, ...] = 100,
    n_classes: int = 10,
    records_per_user: int | None = None,
    n_fits: int = 30,
    mu: float | None = None,
    rate: float = 1e-3,
    seed: int | None = None,
) -> SanityResult:
    """Fit random labels on random rows, and ask for them: few may be remembered.

    Parameters
    ----------
    estimator : object
        Unfitted, with its noise, and left so; needs ``fit`` and ``predict``. Clones
        without a ledger are fitted, whose ``classes`` and ``random_state`` are set. Of
        a regressor a class is a target, evenly within ``target_bounds``, and the
        nearest one to a prediction is predicted.
    n_samples, n_classes : int
        With no more samples than features, a fit without privacy remembers all of them.
    n_features : int or tuple of int
        Of a record, independent standard normal numbers; for a network of images their
        shape (height, width, channels).
    records_per_user : int, optional
        Records of one user, all of one label. Default: 10 with ``max_group_size``,
        where users are passed to ``fit`` as groups, and 1 without.
    n_fits : int
        Each has new data. At epsilon 1 the limit for 10 classes is an accuracy of
        0.44 for 30 fits and 0.68 for 10: fits of epsilon 10 exceed the first alone.
    mu : float, optional
        Gaussian-DP parameter, of a user, that fits are held to. Default: what their
        ``privacy_`` states, and 0 if that is infinite or there is none. With 0 the
        fits must not be better than chance: for `smallest_noise`.
    rate : float
        In (0, 1): bound on the probability that a correct fit fails.
    seed : int, optional
        Of the rows, labels and noise.

    Raises
    ------
    ValueError
        If a parameter is out of range, or the stated cost is so large that no outcome
        could contradict it.

    Notes
    -----
    A correct fit may remember as much as its cost allows. The limit is what all its
    fits together exceed with probability at most ``rate``: proved in
    ``privfeat/audit/sanity_limits.py``.

    **Source.** van der Veen et al. 2018 (arXiv:1812.02890), Section 2.1, with other
    limits.
    """
    check_int("n_samples", n_samples, low=1)
    shape = n_features if isinstance(n_features, tuple) else (n_features,)
    for size in shape:
        check_int("n_features", size, low=1)
    per_user = _records_per_user(estimator, records_per_user)
    users = np.arange(n_samples) // per_user

    def accuracy(rng: Generator, fit: Callable[..., Any]) -> float:
        X = rng.normal(size=(n_samples, *shape))
        y = rng.integers(n_classes, size=n_samples)[users]
        return float(np.mean(np.asarray(fit(X, y, users).predict(X)) == y))

    values, allowed = values_of_fits(
        accuracy, estimator, n_fits, n_classes, per_user=per_user, mu=mu, seed=seed
    )
    if allowed > 1.0 / n_classes or per_user > 1:
        limit = mean_limit(rate, n_fits, allowed)
    else:
        limit = chance_limit(rate, n_fits * n_samples, n_classes)
    return SanityResult("random labels", values, limit, chance=1.0 / n_classes)


def pattern_test(
    estimator: Any,
    *,
    spread: str = "one_user",
    n_users: int = 1000,
    records_per_user: int | None = None,
    n_patterns: int = 1,
    side: int = 14,
    patch: int = 7,
    channels: int | None = None,
    n_features: int | None = None,
    n_classes: int = 10,
    n_fits: int = 10,
    mu: float | None = None,
    rate: float = 1e-3,
    seed: int | None = None,
) -> SanityResult:
    """Plant a patch in noise images: one user's must not be learned.

    Parameters
    ----------
    estimator, records_per_user, n_classes, n_fits, mu, rate, seed
        As for `random_label_test`, errors included; ``rate`` is for one user's patch.
    spread : {"one_user", "all_users"}
        Whose images carry a patch, and have its class: all of one user for each
        pattern, which must not be learned, or a quarter of everyone's, which must be.
        All other labels are random.
    n_users : int
    n_patterns : int
        Patches of a fit, at most ``n_users``, each with a class drawn for it.
    side, patch : int
        Height and width of the images (uniform noise in [-1, 1], so that grey is zero)
        and of the patch in a corner, of values -1 and 1 drawn for each pattern.
    channels : int, optional
        Grey images of shape (side, side, channels), all channels alike, for a network
        of images. None: rows of ``side**2`` numbers.
    n_features : int, optional
        Without ``channels``: width of the rows, at least ``side**2``, whose other
        numbers are 0.

    Notes
    -----
    A fit has learned a pattern if it gives its class to more than half of fresh images
    with it; the value of a fit is the share of patterns that it learned. A model fitted
    without the user of a pattern does so with probability at most ``1 / n_classes``, as
    the class is independent. So the limit is that of `random_label_test`, from the same
    source. Of the patterns of all users at least one half must be learned.
    """
    check_choice("spread", spread, ("one_user", "all_users"))
    check_int("n_users", n_users, low=2)
    check_int("n_patterns", n_patterns, low=1, high=n_users)
    check_int("patch", patch, low=1, high=side)
    if channels is not None:
        check_int("channels", channels, low=1)
    given = side**2 if n_features is None else n_features
    width = check_int("n_features", given, low=side**2)
    one_user = spread == "one_user"
    per_user = _records_per_user(estimator, records_per_user)
    users = np.repeat(np.arange(n_users), per_user)

    def rows(images: NDArray[Any]) -> NDArray[np.float64]:
        if channels is None:
            flat = images.reshape(len(images), -1)
            return np.pad(flat, ((0, 0), (0, width - side**2)))
        return np.repeat(images[..., None], channels, axis=-1)

    def learned(rng: Generator, fit: Callable[..., Any]) -> float:
        patches = rng.choice([-1.0, 1.0], size=(n_patterns, patch, patch))
        classes = rng.integers(n_classes, size=n_patterns)
        y = rng.integers(n_classes, size=len(users))
        # An image of this number has the pattern of the number; there are n_patterns.
        chosen = users
        if not one_user:
            chosen = rng.integers(4 * n_patterns, size=len(users))
        marked = chosen < n_patterns
        y[marked] = classes[chosen[marked]]
        images = rng.uniform(-1.0, 1.0, size=(len(users), side, side))
        images[marked, :patch, :patch] = patches[chosen[marked]]
        model, found = fit(rows(images), y, users), 0
        for pattern, label in zip(patches, classes, strict=True):
            fresh = rng.uniform(-1.0, 1.0, size=(200, side, side))
            fresh[:, :patch, :patch] = pattern
            predicted = np.asarray(model.predict(rows(fresh)))
            found += int(np.mean(predicted == label) > 0.5)
        return found / n_patterns

    values, allowed = values_of_fits(
        learned, estimator, n_fits, n_classes, per_user=per_user, mu=mu, seed=seed
    )
    return SanityResult(
        f"pattern of {'one user' if one_user else 'all users'}",
        values,
        limit=mean_limit(rate, n_fits, allowed) if one_user else 0.5,
        chance=1.0 / n_classes,
        must_stay_below=one_user,
    )


def _records_per_user(estimator: Any, given: int | None) -> int:
    default = 1 if getattr(estimator, "max_group_size", None) is None else 10
    return check_int("records_per_user", default if given is None else given, low=1)
