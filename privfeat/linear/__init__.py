"""The linear models, one file each, on the shared base classes in ``model``.

A new one is a class with parameters of its own, as annotated attributes, and three
methods: ``_queries``, the sums that it wants with their sensitivities; ``_solve``,
which hands each sum to ``mechanism.release`` and makes coefficients of what comes back;
and ``_loss`` of a classifier, for its probabilities. `privfeat.core.bounds.sensitivity`
has the bounds and `privfeat.core.sums.statistics` the sums. The README has a whole one
under "Adding a mechanism".
"""

from privfeat.linear.adam import DPAdamLinear
from privfeat.linear.classifier import DPLinearClassifier
from privfeat.linear.feature_covariance import DPFC
from privfeat.linear.least_squares import DPLeastSquares
from privfeat.linear.least_squares_regressor import DPLeastSquaresRegressor
from privfeat.linear.newton import DPNewton

__all__ = [
    "DPFC",
    "DPAdamLinear",
    "DPLeastSquares",
    "DPLeastSquaresRegressor",
    "DPLinearClassifier",
    "DPNewton",
]
