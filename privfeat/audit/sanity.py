"""What a private fit must not learn: labels of chance, and one user's pattern."""

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from privfeat._checks import check_choice, check_int, check_real
from privfeat._extras import require
from privfeat._random import Generator, make_rng, seed_from
from privfeat.audit._throwaway import throw_away, without_privacy_warnings


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
    def margin(self) -> float:
        """How far the mean is on the good side of ``limit``; negative on the other."""
        distance = self.limit - sum(self.values) / len(self.values)
        return distance if self.must_stay_below else -distance

    @property
    def passed(self) -> bool:
        """Whether the mean is on the good side of ``limit``."""
        return self.margin >= 0.0

    def __str__(self) -> str:
        """Return one line."""
        return (
            f"{self.name}: {'pass' if self.passed else 'FAIL'}, mean "
            f"{sum(self.values) / len(self.values):.3f}, must be at "
            f"{'most' if self.must_stay_below else 'least'} {self.limit:.3f} (margin "
            f"{self.margin:+.3f}, chance {self.chance:.3f})"
        )

    def plot(self) -> bytes:
        """Return a PNG: the value of each fit, with limit and chance.

        Raises
        ------
        ImportError
            If matplotlib is missing.
        """
        require("a figure", "matplotlib", extra="plot")
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(5.0, 3.2), layout="constrained")
        canvas = FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        colour = "#0072B2" if self.passed else "#D55E00"
        axes.plot(range(1, len(self.values) + 1), self.values, "o", color=colour)
        axes.axhline(self.limit, color="black", linewidth=1, label="limit")
        axes.axhline(self.chance, color="#555555", linestyle=":", label="chance")
        axes.set_ylim(-0.03, 1.03)
        axes.set_xlabel("fit")
        axes.set_ylabel("rate")
        axes.set_title(f"{self.name}: {'pass' if self.passed else 'FAIL'}", loc="left")
        axes.legend(frameon=False)
        buffer = io.BytesIO()
        canvas.print_figure(buffer, format="png", dpi=120)
        return buffer.getvalue()


def random_label_test(
    estimator: Any,
    *,
    n_samples: int = 1000,
    n_features: int | tuple[int, ...] = 100,
    n_classes: int = 10,
    rate: float = 1e-3,
    seed: int | None = None,
) -> SanityResult:
    """Fit random labels on random rows: the training accuracy must be that of chance.

    Parameters
    ----------
    estimator : object
        Unfitted, with its noise, and left so; needs ``fit`` and ``predict``. Of the
        clone that is fitted, ``classes`` and ``random_state`` are set, where it has
        them, and its ledger is taken away.
    n_samples, n_classes : int
    n_features : int or tuple of int
        Of a record, independent standard normal numbers; for a network of images their
        shape (height, width, channels).
    rate : float
        In (0, 1): false-positive rate. The limit is the quantile of the binomial
        distribution that a fit without memory passes with probability ``1 - rate``.
    seed : int, optional
        Of the rows, labels and noise.

    Notes
    -----
    **Source.** van der Veen et al. 2018 (arXiv:1812.02890), Section 2.1.
    """
    check_int("n_samples", n_samples, low=1)
    shape = n_features if isinstance(n_features, tuple) else (n_features,)
    for size in shape:
        check_int("n_features", size, low=1)
    check_int("n_classes", n_classes, low=2)
    limit = _limit(rate, n_samples, n_classes)
    rng = make_rng(seed)
    X = rng.normal(size=(n_samples, *shape))
    y = rng.integers(n_classes, size=n_samples)
    model = _fit(estimator, n_classes, rng, X, y, None)
    accuracy = float(np.mean(np.asarray(model.predict(X)) == y))
    return SanityResult(
        "random labels",
        (accuracy,),
        limit=limit,
        chance=1.0 / n_classes,
    )


def pattern_test(
    estimator: Any,
    *,
    spread: str = "one_user",
    n_users: int = 1000,
    records_per_user: int = 10,
    side: int = 28,
    patch: int = 14,
    channels: int | None = None,
    n_classes: int = 10,
    n_fits: int = 5,
    rate: float = 1e-3,
    seed: int | None = None,
) -> SanityResult:
    """Plant a white patch in noise images: one user's must not be learned.

    Parameters
    ----------
    estimator : object
        As for `random_label_test`. With ``max_group_size``, users are passed to
        ``fit`` as groups.
    spread : {"one_user", "all_users"}
        Whose images carry the patch, and are then of class 0: all of one user, which
        must not be learned, or a quarter of everyone's, which must be. All other
        labels are random.
    n_users, records_per_user : int
    side, patch : int
        Height and width of the images (uniform noise in [-1, 1], so that grey is zero)
        and of the patch, whose value is 1.
    channels : int, optional
        Grey images of shape (side, side, channels), all channels alike, for a network
        of images. None: rows of ``side**2`` numbers.
    n_classes, n_fits : int
    rate : float
        In (0, 1): false-positive rate of the test of one user.
    seed : int, optional
        Of the images, labels and noise.

    Notes
    -----
    A fit has learned the patch if it gives class 0 to more than half of fresh images
    with it. All of them see the same noise in the coefficients, so each fit counts as
    one draw. For one user the share of such fits must be at most what is likely by
    chance; for all users, at least one half.

    **Source.** van der Veen et al. 2018 (arXiv:1812.02890), Section 2.1.
    """
    check_choice("spread", spread, ("one_user", "all_users"))
    check_int("n_fits", n_fits, low=1)
    check_int("n_users", n_users, low=2)
    check_int("records_per_user", records_per_user, low=1)
    check_int("patch", patch, low=1, high=side)
    check_int("n_classes", n_classes, low=2)
    if channels is not None:
        check_int("channels", channels, low=1)
    one_user = spread == "one_user"
    limit = _limit(rate, n_fits, n_classes) if one_user else 0.5
    rng = make_rng(seed)
    grouped = getattr(estimator, "max_group_size", None) is not None
    learned = []
    for _ in range(n_fits):
        users = np.repeat(np.arange(n_users), records_per_user)
        y = rng.integers(n_classes, size=len(users))
        marked = users == 0 if one_user else rng.random(len(users)) < 0.25
        y[marked] = 0
        X = _images(rng, marked, side, patch, channels)
        model = _fit(estimator, n_classes, rng, X, y, users if grouped else None)
        fresh = _images(rng, np.ones(200, bool), side, patch, channels)
        learned.append(float(np.mean(np.asarray(model.predict(fresh)) == 0) > 0.5))
    return SanityResult(
        f"pattern of {'one user' if one_user else 'all users'}",
        tuple(learned),
        limit=limit,
        chance=1.0 / n_classes,
        must_stay_below=one_user,
    )


def _fit(
    estimator: Any,
    n_classes: int,
    rng: Generator,
    X: NDArray[Any],
    y: NDArray[Any],
    users: NDArray[Any] | None,
) -> Any:
    # each with its own seed, or all fits would share their noise
    model = throw_away(estimator, classes=range(n_classes), random_state=seed_from(rng))
    with without_privacy_warnings():
        model.fit(*((X, y) if users is None else (X, y, users)))
    return model


def _images(
    rng: Generator,
    marked: NDArray[np.bool_],
    side: int,
    patch: int,
    channels: int | None,
) -> NDArray[np.float64]:
    images = rng.uniform(-1.0, 1.0, size=(len(marked), side, side))
    images[marked, :patch, :patch] = 1.0
    if channels is None:
        return images.reshape(len(marked), -1)
    return np.repeat(images[..., None], channels, axis=-1)


def _limit(rate: float, n_draws: int, n_classes: int) -> float:
    check_real("rate", rate, low=0.0, high=1.0, include_low=False, include_high=False)
    limit = float(stats.binom.isf(rate, n_draws, 1.0 / n_classes)) / n_draws
    if not limit < 1.0:
        raise ValueError(
            f"rate must leave a test that can fail, got {rate!r} for {n_draws} draws. "
            "Pass a larger one, or more fits or samples."
        )
    return limit
