"""The linear models, one file each on the shared base ``_base``."""

from privfeat.linear.adam import DPAdamLinear
from privfeat.linear.feature_covariance import DPFC
from privfeat.linear.least_squares import DPLeastSquares
from privfeat.linear.least_squares_regressor import DPLeastSquaresRegressor
from privfeat.linear.newton import DPNewton

__all__ = [
    "DPFC",
    "DPAdamLinear",
    "DPLeastSquares",
    "DPLeastSquaresRegressor",
    "DPNewton",
]
