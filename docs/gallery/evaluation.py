"""The accuracy of a model on people who are private too.

For whoever has a test set as private as the training set. After this page you can say
how good a model is, with intervals that are honest about the noise.
"""

# %%
# An exact accuracy tells of the test records: two of them, with and without one person,
# say whether the model was right about that person. `private_evaluation` adds noise to
# all counts, for a budget of the test records, and gives each figure an interval.
#
# The model reads digits. It was fitted to 600 of them; 1,197 other people wrote the
# rest. These images are public, so the first 600 will do. Private records are divided
# by a number or name of each (`HashKFold`), never by their place.

import matplotlib.pyplot as plt
import numpy as np

from privfeat import DPFC, open_features
from privfeat.metrics import private_evaluation

digits = open_features("quickstart/digits.h5")
X = np.concatenate([digits["train"].X[:], digits["test"].X[:]])
y = np.concatenate([digits["train"].y[:], digits["test"].y[:]])
clf = DPFC(epsilon=2.0, classes=range(10)).fit(X[:600], y[:600])
tested = X[600:], y[600:]
evaluation = private_evaluation(clf, *tested, epsilon=1.0)
print(evaluation)
print(evaluation.privacy.epsilon, "for the test records")

# %%
# How much budget does an evaluation need? Here are private figures at several epsilons,
# beside the exact one, which only public data may show.

exact = clf.score(*tested)
epsilons = [0.1, 0.3, 1.0, 3.0]
found = [
    private_evaluation(clf, *tested, epsilon=epsilon).accuracy for epsilon in epsilons
]
values = np.array([[each.value, each.low, each.high] for each in found])

fig, ax = plt.subplots(figsize=(6.5, 3.4))
places = range(len(epsilons))
ax.vlines(places, values[:, 1], values[:, 2], lw=3)
ax.plot(places, values[:, 0], "o", color="white", mec="#1F77B4", mew=2, label="private")
ax.axhline(exact, color="#555555", ls="--", label="exact, of these records")
ax.set_xticks(places, [f"{epsilon:g}" for epsilon in epsilons])
ax.set(xlabel="epsilon of the evaluation", ylabel="accuracy", ylim=(0, 1.02))
ax.legend(frameon=False, loc="lower right")
fig.set_label(
    "Private accuracy with a 95 % interval at four epsilons. The interval at epsilon "
    "0.1 is wide; at epsilon 3 it is narrow, near the exact accuracy."
)
widths = values[:, 2] - values[:, 1]
widest, *_, narrowest = widths
at_one = found[2]
assert narrowest < widest

# %%
# ## What we learnt
#
# The exact accuracy of these 1,197 records is {exact:.3f}. At epsilon 1 the private one
# is {at_one.value:.3f}, between {at_one.low:.3f} and {at_one.high:.3f}. From epsilon
# 0.1 to 3 the interval shrank from {widest:.2f} to {narrowest:.2f}. It holds the noise
# and the sampling, so it never shrinks to nothing: other patients would give another
# accuracy. [The guide](../guides/evaluation.md) has ROC, calibration and regression.
