"""The documentation of the parameters that estimators share, written once."""

from typing import TypeVar

T = TypeVar("T", bound=type)

# By their placeholders.
_TEXTS = {
    "budget": """epsilon : float, optional
        Total budget, > 0, together with ``delta``; ``inf`` turns noise and clipping
        off. Default: 1 if no budget is given at all, since no fit may be without noise
        unasked; 1 itself is a convention.
    delta : float, default=1e-5
        In [1e-10, 1); choose it well below one over the number of records. Default:
        1e-5, as in the papers.
    rho : float, optional
        Total zCDP budget, > 0, instead of ``epsilon``.
    noise_multiplier : float, optional
        Noise stddev over sensitivity of every single release, in [1e-6, 1e6], instead
        of ``epsilon``; where a release gets another part of rho by default, its
        multiplier is that of this part.
    adjacency : {"add_remove", "replace_one"}, default="add_remove"
        What neighbouring data sets are. Default: add/remove, since it hides the number
        of records as well, and replace-one needs up to twice the noise.
    accounting : {"exact", "zcdp", "pld", "rdp"}, default="exact"
        How noise converts to (epsilon, delta): the exact curve of the composed
        Gaussian, the zCDP bound that the papers use, or dp-accounting's privacy loss
        distribution or Rényi divergences. Default: exact, since no other states less
        for the same noise.
    arithmetic : {"float64", "exact"}, default="float64"
        Continuous Gaussian noise in float64, or discrete Gaussian noise, drawn exactly
        from the operating system's random bits and added to whole numbers: then the low
        bits of a release show nothing either. The budget buys the same. Default:
        float64, since exact noise takes 1.11 times as long for `DPFC` (RESULTS, *Exact
        mode*).
    budget_split : mapping of release name to fraction, optional
        Shares of rho, > 0 and summing to 1. Default: equal noise multipliers, as in the
        paper, but where the estimator says otherwise; a tenth of rho for
        ``feature_mean``, where a classifier releases it. Of parts that are released as
        one stack, the shares set the ratio of the noise.
    max_group_size : int, optional
        How many records of a user count, >= 1, together with ``groups`` in ``fit``;
        others are dropped at random. At most 512 for ``user_bound="sum"``.
    user_bound : {"count", "sum"}, default="sum"
        What bounds a user. ``"sum"``, the default for the reasons below, and above
        ``"count"`` in 57 of 60 cells (RESULTS, *Users with several records*): all that
        the records of a user add to a sum is scaled down together to what one record
        may add, and the noise does not grow with ``max_group_size``. ``"count"``: the
        number of records alone, and it grows in proportion. ``k`` records that differ
        add up to some ``sqrt(k)``, so that ``"sum"`` scales them by ``1 / sqrt(k)``,
        where ``"count"`` has ``k`` times the noise; equal ones it scales by ``1 / k``,
        which is no worse. A clip at more than one record adds as much noise as it keeps
        of such users, and more beside users with one record: hence no parameter. To
        average the rows of a user is no option here: where all have one label it was on
        a par at epsilon 0.5 and 1 and behind at 8, and where they have several it lost
        tens of points. Under replace-one no sums are stacked, and ``feature_mean`` has
        twice the sensitivity.
    ledger : PrivacyLedger, optional
        Charged before any noise is drawn; a ``fit`` that its budget has no room for
        fails and changes nothing. Copies of the estimator charge the same budget.""",
    "shared": """{budget}
    classes : array-like, optional
        All possible labels, public. None, the default as in scikit-learn, reads them
        from ``y`` and warns. For an indicator matrix ``y``: the names of its columns,
        in their order. Labels may be texts: numbers that ``LabelEncoder`` or
        ``pandas.factorize`` made of the labels move with single records.
    max_labels : int, optional
        Labels of a record that count, >= 1, where ``y`` is an indicator matrix: of a
        record with more, the first in the order of the columns. Default: all, since
        only the noise of `DPLeastSquares` grows with it, as its square root.
    center : bool or array-like of shape (n_features,), default=True
        Subtracted from every row, also when predicting; rows of unit norm are scaled to
        unit norm again. True, the default since digits had 62 % without for 81 with it
        at epsilon 0.5 (*How the defaults were found*): the mean of the rows, released
        first, with their number, for a tenth of rho: on digits at epsilon 0.3 accuracy
        was 73 % with it and 68 with a twentieth, at 8 equal (benchmarks/RESULTS.md). An
        array is a mean of **public** rows (of unit norm for ``row_scaling="unit"``) and
        costs nothing, which helps most at a small epsilon. Sparse rows take False
        alone: centred they would be dense.
    row_scaling : {"unit", "clip"}, default="unit"
        Scale every row to norm ``clip_norm``, also when predicting, or clip only the
        rows that are longer. ``"unit"``, the default, since each row then has all the
        signal that the noise is paid for, and no norm of the records has to be known.
        All defaults were chosen with it; ``"clip"`` was not measured beside it.
    clip_norm : float, default=1.0
        Bound on the norm of a row, in feature units (after the scaling to unit norm,
        whose scale is arbitrary, for ``"unit"``); in [1e-6, 1e6]. Rows are resolved to
        ``clip_norm * 2**-20``. Default: 1, since for ``"unit"`` any bound is as good;
        for ``"clip"`` none suits all features: choose it.
    fit_intercept : bool, default=True
        Append a constant coordinate to each row, inside the bound: True by default, as
        in scikit-learn, and since centred rows cannot tell a common class from a rare
        one without it.
    intercept_scaling : float, default=0.1
        The constant coordinate, next to a row of unit norm for ``"unit"``, to the raw
        row for ``"clip"``; in [1e-6, 1e6]. Default: 0.1, since it takes 0.5 % of the
        norm of a row and with it `DPLeastSquares` told one class of ten from the rest
        in 98.6 % for 84.8, at epsilon 8; otherwise 0.1 and 0.3 were equal to none
        (RESULTS, *How the defaults were found*).""",
    "class_weight": """class_weight : "balanced", mapping or array-like, optional
        Weights of the classes, public, > 0: a mapping (a class that is not in it weighs
        1), or an array in the order of ``classes_``. Only ratios matter. ``"balanced"``
        is one over the number of records of a class, released for 5 % of rho: all other
        releases have 2.6 % more noise for it. Other shares were not measured; what
        ``"balanced"`` buys with this one is in RESULTS, *Rare classes*. Not for an
        indicator matrix ``y``. See *Class weights*.""",
    "weights": """\
**Class weights.** What a record adds is multiplied by the weight of its
    class: its gradient, after the clip, and its outer product. Weights are divided by
    the largest one, so that sensitivities stay as they are (`privfeat.core.sums.
    arithmetic.weighted`); the noise stays as well, and what is learned of a common
    class is what fewer records tell. Where `predict_proba` is to be right, or noise is
    large, fit without weights and move the intercepts (`privfeat.analysis.rates`).
    ``"balanced"`` first releases ``class_counts``, sensitivity 1, or ``sqrt(2)`` under
    replace-one, and lifts counts to the noise of the fit: a class without records gets
    no infinite weight. ``class_weight_`` has the weights that were used.""",
    "prior": """prior : array or fitted linear classifier, optional
        How rows score before any record is seen, **public**; only up to a factor, which
        the fit finds. So a bad prior costs little where the releases tell that it is
        bad (`DPLeastSquares` up to 5 points at epsilon 1), and more where they cannot:
        on digits at epsilon 0.2 a random one 4 to 7 points of 58 to 69, a half-wrong
        one 1 to 7 (RESULTS, *A public prior*). An array of shape (n_classes,
        n_features), in the order of ``classes_``, which are sorted, scores rows as
        ``decision_function`` sees them, and may have one more column, of intercepts:
        features of the names of the classes, say. Of an estimator ``coef_`` and
        ``intercept_`` count, for rows scaled to unit norm with ``row_scaling="unit"``,
        and shifted by its ``center_``, if it has one; its ``classes_`` may have another
        order. Wrap it in ``sklearn.frozen.FrozenEstimator``, or clones forget what it
        was fitted to.""",
    "regression_prior": """prior : array or fitted linear regressor, optional
        What targets are before any record is seen, **public**, in units of the targets.
        An array of shape (n_features,) holds slopes for rows as ``predict`` sees them,
        of unit norm with ``row_scaling="unit"``; one more number is the intercept, else
        that of the records is found. Of an estimator ``coef_`` and ``intercept_``
        count. Wrap it in ``sklearn.frozen.FrozenEstimator``, or clones forget what it
        was fitted to. Needs ``n_iter`` of 2 or more. See *Prior*.""",
    "public": """public : array or features of a file, optional
        Rows of **public** records, of shape (n_public, n_features), made by the same
        network: they tell where rows lie, and where a signal is to be expected. They
        may be few or millions, and are read in parts from a feature file
        (``open_features(path)["train"]``). The guarantee does not cover them: none may
        be a record of the fit. See *Public rows*.""",
    "public_rows": """\
**Public rows.** They are scaled and centred as private ones, and no
    sum of records holds them. The released mean is shrunk towards theirs, and noisy
    gradients are filtered by their spectrum: after the release, at no cost. Both look
    in the releases for evidence that public rows are of the same kind, and change next
    to nothing without it; nor are gradients filtered where a nearly unbiased
    estimate says that scores lose by it: see `privfeat.solvers.public`. The Gram matrix
    is released all the same, and not mixed with theirs: an exact one in its place
    gained 0.3 points (RESULTS, *How the defaults were found*), and by default it has
    2 % of rho at most. The tenth of rho of the mean is saved by ``center=``, an array.
    """,
    "public_mean": """\
**Public rows.** The released mean is shrunk towards theirs, as far as
    it points there, at no cost (`privfeat.solvers.spectrum.shrunk_towards`).""",
    "prior_weight": """\
**Prior.** The coefficients are ``a P + D``, with the prior ``P``. Its
    weight ``a`` is found from the releases, at no cost: see
    `privfeat.solvers.prior.PriorWeight`. A fixed one is wrong somewhere: at a small
    epsilon the scores of the prior must drown the noise of what is learned, and at a
    large one they would drown what is learned. Where a Gram matrix is released,
    gradients are taken beside scores of the prior with a spread of 0.45 at most. With a
    spread of 1 names of two and four classes cost up to 2.4 points on sentences, now
    half a point (RESULTS, *Texts*).""",
    "regression_prior_weight": """**Prior.** Corrections begin at ``a P + (1 - a) w``,
    with the prior ``P`` and the solution ``w`` of the released matrix. This matrix and
    each correction tell ``a``, at no cost: see `privfeat.solvers.regression_prior`. A
    ``ridge`` is centred at ``a P``. Where noise hides all, ``a`` is near one half: a
    right prior and a wrong one cannot be told apart there. Intervals are refused: how
    far a fit with a prior is off depends on how wrong the prior is, which no release
    tells.""",
    "tail": """random_state : int, RandomState or None, default=None
        None, the default since noise protects only while nobody can guess it, draws
        fresh operating-system entropy at every ``fit``. A seed is for tests and
        published experiments: it is marked in ``privacy_`` and warns.
    verbose : int, default=0
        Positive tells on stderr what the fit costs and shows its phases and steps: as
        bars on a terminal or in a notebook, elsewhere as at most a line a minute. No
        number of records is shown.""",
    "attributes": """Attributes
    ----------
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        One row for two classes that exclude each other.
    intercept_ : array of shape (1,) or (n_classes,)
    center_ : array of shape (n_features,)
        Subtracted from every row (of unit norm for ``row_scaling="unit"``); zeros with
        ``center=False``.
    classes_ : array of shape (n_classes,)
    multilabel_ : bool
        Whether the fit was to an indicator matrix.
    n_iter_ : int
        Number of noisy steps, as planned.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features,)
        Only for input with string column names.
    privacy_ : PrivacyStatement
        What was released, at what cost, assuming what.""",
    "mean": """\
With ``center=True`` the first release is ``feature_mean``, the sum of the
    rows and their number: sensitivity ``clip_norm`` (twice that under replace-one, or
    ``sqrt(3.2)`` times with rows of unit norm, which share the count).""",
    "guarantees": """\
**Public.** Number and names of features, the classes of a model, all
    constructor parameters, and under replace-one the number of records (or users).

    **Not protected.** Timing and memory use; a fit whose seed somebody guesses; the low
    bits of floating-point noise, without ``arithmetic="exact"``; several fits on the
    same records, unless a ``ledger`` adds their costs. Predictions on the training
    records use the released coefficients, and cost nothing more.""",
    "example": """Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from privfeat import CLASS
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = CLASS(epsilon=8, classes=range(10)).fit(X, y)
    >>> clf.score(X, y) > 0.7
    True""",
}
_TEXTS["shared"] = _TEXTS["shared"].replace("{budget}", _TEXTS["budget"])


def document(cls: T) -> T:
    """Fill the shared sections into the placeholders of a class docstring."""
    example = _TEXTS["example"].replace("CLASS", cls.__name__)
    cls.__doc__ = (cls.__doc__ or "").format(**_TEXTS | {"example": example})
    return cls
