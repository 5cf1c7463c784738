"""Probabilities that can be believed.

For whoever acts on the probability of a prediction, not on the class alone. After this
page you can see whether a private model is too sure or too modest, and mend it.
"""

# %%
# A classifier that is 80 % sure should be right in 80 % of cases. A private one often
# is not, since noise moves its scores. `TemperatureScaling` divides the scores by one
# number. It needs records that the classifier has not seen, which may be private: then
# they pay an epsilon of their own.

import matplotlib.pyplot as plt
import numpy as np

from privfeat import DPFC, TemperatureScaling, open_features
from privfeat.analysis.calibration import report_of
from privfeat.analysis.reliability import ReliabilityDisplay

digits = open_features("quickstart/digits.h5")
X = np.concatenate([digits["train"].X[:], digits["test"].X[:]])
y = np.concatenate([digits["train"].y[:], digits["test"].y[:]])
fitted, scaled_by, held_out = slice(0, 900), slice(900, 1300), slice(1300, None)
clf = DPFC(epsilon=0.5, classes=range(10)).fit(X[fitted], y[fitted])
scaled = TemperatureScaling(clf, epsilon=0.5).fit(X[scaled_by], y[scaled_by])
print(f"temperature {scaled.temperature_:.2f}")
print(scaled.privacy_.epsilon, "for the records that chose it")

# %%
# The figures compare confidence and accuracy on held-out images. *ECE* is the mean
# distance of the two.

fig, axes = plt.subplots(1, 2, figsize=(8, 3.8))
errors = []
for ax, model, name in zip(axes, (clf, scaled), ("before", "after"), strict=True):
    report = report_of(model, X[held_out], y[held_out])
    errors.append(report.ece)
    ReliabilityDisplay(report).plot(ax)
    ax.set_title(name, loc="right")
fig.set_label(
    "Two reliability diagrams, confidence against accuracy. Before, the points lie "
    "far from the diagonal; after the scaling they lie near it."
)
before, after = errors
same = np.array_equal(clf.predict(X[held_out]), scaled.predict(X[held_out]))
assert same
assert after < before

# %%
# ## What we learnt
#
# The mean distance of confidence and accuracy fell from {before:.2f} to {after:.2f}.
# The predicted classes are the same as before. The records of the second fit are other
# people than those of the first, so the two budgets do not add up: each person is in
# one. [Looking at a fit](../guides/report.md#calibration) is the guide.
