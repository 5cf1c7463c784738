"""A public guess, worth most at epsilon 0.1.

For whoever has few records, or must stay at a small epsilon, and knows something public
about the task. After this page you can pass it to a fit as ``prior=``.
"""

# %%
# Suppose that 60 images are public: volunteers gave them. The others are private, and
# epsilon must be small. The volunteers alone make a modest classifier. As a *prior* it
# tells the private fit where to begin, and costs no privacy.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

from privfeat import DPFC, open_features

digits = open_features("quickstart/digits.h5")
train, test = digits["train"], digits["test"]
X, y = test.X[:], test.y[:]
public, held_out = slice(0, 60), slice(60, None)
head = LogisticRegression(C=100).fit(normalize(X[public]), y[public])
alone = head.score(normalize(X[held_out]), y[held_out])
print(f"the volunteers alone: {alone:.2f}")

# %%
# Now the private fits, without the prior and with it, ten of each. The held-out images
# are public here: exact accuracies of private images would need
# [a budget of their own](evaluation.md).


def accuracies(epsilon, prior):
    return [
        DPFC(epsilon=epsilon, classes=range(10), prior=prior)
        .fit(train.X, train.y)
        .score(X[held_out], y[held_out])
        for _ in range(10)
    ]


epsilons = [0.1, 0.3, 1.0, 3.0]
without = np.array([accuracies(epsilon, None) for epsilon in epsilons])
with_prior = np.array([accuracies(e, FrozenEstimator(head)) for e in epsilons])

fig, ax = plt.subplots(figsize=(6.5, 3.6))
for found, name, marker in (
    (with_prior, "with the prior", "o"),
    (without, "without", "s"),
):
    mean, spread = found.mean(axis=1), found.std(axis=1)
    ax.errorbar(epsilons, mean, spread, marker=marker, capsize=3, label=name)
ax.axhline(alone, color="#555555", ls="--", label="the volunteers alone")
ax.set(xscale="log", xlabel="epsilon", ylabel="accuracy", ylim=(0, 1))
ax.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
ax.legend(frameon=False, loc="lower right")
fig.set_label(
    "Accuracy against epsilon. Without the prior it is low at epsilon 0.1 and rises "
    "steeply; with the prior it starts near that of the volunteers alone and ends "
    "above."
)
low, *_, high = without.mean(axis=1)
low_prior, *_, high_prior = with_prior.mean(axis=1)
assert low_prior > low + 0.2
assert high_prior > alone

# %%
# ## What we learnt
#
# At epsilon 0.1 the prior lifted the accuracy from {low:.2f} to {low_prior:.2f}. At
# epsilon 3 the records say nearly everything by themselves: {high:.2f} without the
# prior, {high_prior:.2f} with it. The fit finds by itself how much the prior is worth,
# from noisy sums that it releases anyway.
#
# A prior must not be made from the private records.
# [What is known before a record is seen](../guides/prior.md) has more kinds of priors.
