"""Accuracy against epsilon.

For whoever must choose an estimator and an epsilon. After this page you can draw the
curve that shows what a smaller epsilon costs, on public data like yours.
"""

# %%
# The one figure that every talk about private learning needs is drawn by one class. It
# fits each estimator several times at each epsilon, so it is for public data: of
# private records each point would spend its epsilon.

from sklearn.linear_model import LogisticRegression

from privfeat import DPFC, DPLeastSquares, DPNearestMean, open_features
from privfeat.analysis.utility import PrivacyUtilityDisplay, measure_utility

digits = open_features("quickstart/digits.h5")
train, test = digits["train"], digits["test"]
data = train.X[:], train.y[:], test.X[:], test.y[:]
classes = range(10)
epsilons = [0.1, 0.3, 1.0, 3.0, 8.0]
estimators = {
    "DPFC": DPFC(classes=classes),
    "DPLeastSquares": DPLeastSquares(classes=classes),
    "DPNearestMean": DPNearestMean(classes=classes),
}
curves = measure_utility(estimators, epsilons, *data, n_repeats=5)
plain = LogisticRegression(C=100, max_iter=1000).fit(*data[:2]).score(*data[2:])

# %%
# Lines join the means of five fits, bands are one standard deviation. *ECE* is the mean
# distance of confidence and accuracy: how far probabilities can be believed.

display = PrivacyUtilityDisplay(
    epsilons, curves, baseline=("logistic regression", plain)
).plot()
display.figure_.set_label(
    "Two plots against epsilon, for three estimators: accuracy, which rises with "
    "epsilon, and the calibration error."
)
best = {name: curve.accuracy.mean(axis=1) for name, curve in curves.items()}
tenth, one, eight = (best["DPFC"][epsilons.index(e)] for e in (0.1, 1.0, 8.0))
assert tenth < one < eight

# %%
# ## What we learnt
#
# `DPFC` goes from {tenth:.2f} at epsilon 0.1 over {one:.2f} at epsilon 1 to {eight:.2f}
# at epsilon 8. Logistic regression without privacy has {plain:.2f}. These are 1,438
# images: with more records the whole curve moves to the left, as
# [an average shows](noise.md#more-records). A [prior](prior.md) lifts its left end.
# [Which estimator](../guides/estimators.md) has figures of larger data.
