"""Answers that say how sure they are.

For whoever would rather hear "a three or an eight" than a wrong digit. After this page
you can predict sets of classes that hold the true one as often as you ask.
"""

# %%
# `ConformalClassifier` takes a fitted model, and chooses on private records it has not
# seen how probable a class must be to be in the set. The promise holds for every model,
# good or bad: a bad one gets large sets. These images are public, so the first 800 will
# do. Private ones are divided by a number or name of each (`HashKFold`), never by their
# place.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from privfeat import DPFC, ConformalClassifier, open_features

digits = open_features("quickstart/digits.h5")
train, test = digits["train"], digits["test"]
X, y = train.X[:], train.y[:]
clf = DPFC(epsilon=1.0, classes=range(10)).fit(X[:800], y[:800])
asked = [0.3, 0.2, 0.1, 0.05]
chosen = [
    ConformalClassifier(clf, alpha=alpha, epsilon=2.0).fit(X[800:], y[800:])
    for alpha in asked
]

# %%
# How often do the sets hold the true digit, and how large are they? (Four fits on the
# same records cost more than one. On private records choose one `alpha` before.)

sets = [model.predict_set(test.X) for model in chosen]
held = [np.mean(found[np.arange(len(found)), test.y[:]]) for found in sets]
sizes = [found.sum(axis=1).mean() for found in sets]

fig, (left, right) = plt.subplots(1, 2, figsize=(8, 3.4))
promised = [1 - alpha for alpha in asked]
left.plot(promised, held, "o-", label="measured")
left.plot(promised, promised, "--", color="#555555", label="promised")
left.set(xlabel="1 - alpha", ylabel="sets that hold the true digit")
left.legend(frameon=False)
right.plot(promised, sizes, "s-", color="#D55E00")
right.set(xlabel="1 - alpha", ylabel="mean size of a set", ylim=(0, None))
fig.set_label(
    "Left: the part of sets that hold the true digit lies above what was promised. "
    "Right: the mean size of a set grows with what is promised."
)
assert all(h > p - 0.08 for h, p in zip(held, promised, strict=True))

# %%
# The sets of `alpha = 0.1` for some images, those that the model is least sure of:

images = load_digits().images[4::5]  # every fifth is a test image
of_tenth = sets[asked.index(0.1)]
places = np.argsort(-of_tenth.sum(axis=1), kind="stable")[:6]
fig, axes = plt.subplots(1, 6, figsize=(8, 1.9))
for ax, place in zip(axes, places, strict=True):
    ax.imshow(images[place], cmap="gray_r")
    ax.set(xticks=[], yticks=[])
    ax.set_title(", ".join(map(str, np.flatnonzero(of_tenth[place]))), fontsize=9)
fig.set_label("Six blurred digits, each under the set of digits that it may be.")

# %%
# ## What we learnt
#
# Asked for 90 %, the sets held the true digit in {held[2]:.0%} of cases, with
# {sizes[2]:.1f} digits on average. Asked for 95 %, they are larger: {sizes[3]:.1f}. The
# noise makes sets a little larger than they would be without privacy, never less
# honest, but for a stated probability of 1 %.
# [The guide](../guides/evaluation.md#sets-of-classes) says the rest.
