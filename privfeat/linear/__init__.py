"""The linear models, one file each, on the base classes `model` and `classifier`.

A new one is a class with its parameters as annotated attributes, what these may be in
``_ranges``, and two methods:
``_queries`` returns the sums that it wants, with their sensitivities; ``_solve`` gives
each sum to ``mechanism.release``, and makes coefficients of the releases.
`privfeat.core.bounds.sensitivity` has the bounds and `privfeat.core.sums.statistics`
the sums. ``docs/guides/mechanism.md`` has an example.
"""

from privfeat.linear.adam import DPAdamLinear
from privfeat.linear.classifier import DPLinearClassifier
from privfeat.linear.feature_covariance import DPFC
from privfeat.linear.least_squares import DPLeastSquares
from privfeat.linear.least_squares_regressor import DPLeastSquaresRegressor
from privfeat.linear.nearest_mean import DPNearestMean
from privfeat.linear.newton import DPNewton

__all__ = [
    "DPFC",
    "DPAdamLinear",
    "DPLeastSquares",
    "DPLeastSquaresRegressor",
    "DPLinearClassifier",
    "DPNearestMean",
    "DPNewton",
]
