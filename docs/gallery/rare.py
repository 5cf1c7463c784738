"""A long tail: classes with few records.

For whoever has classes that are rare, such as a disease. After this page you can see
what a private fit does to them, and give them their share at no cost.
"""

# %%
# In real data some classes have many records and others few. We thin the digits: zeros
# keep all of their images, and each digit after that fewer. That these shares are as
# they are is public here, as the rates of a disease often are.

import matplotlib.pyplot as plt
import numpy as np

from privfeat import DPFC, open_features
from privfeat.analysis.rates import shifted_rates

digits = open_features("quickstart/digits.h5")
X, y = digits["train"].X[:], digits["train"].y[:]
test = digits["test"]
counts = np.round(140 * 0.75 ** np.arange(10)).astype(int)
kept = np.concatenate(
    [np.flatnonzero(y == k)[:count] for k, count in enumerate(counts)]
)
shares = counts / counts.sum()
print(dict(enumerate(counts.tolist())))

# %%
# We fit at epsilon 4, and look at the *recall* of each digit: the part of its test
# images that are found. Each figure is a mean over 20 fits, which shows what to expect.


def recalls(model):
    predicted = model.predict(test.X)
    return [np.mean(predicted[test.y[:] == k] == k) for k in range(10)]


plain, moved, weighted = [], [], []
for _ in range(20):
    clf = DPFC(epsilon=4.0, classes=range(10)).fit(X[kept], y[kept])
    plain.append(recalls(clf))
    equal = shifted_rates(clf, before=shares, after=np.full(10, 0.1))
    moved.append(recalls(equal))
    balanced = DPFC(epsilon=4.0, classes=range(10), class_weight="balanced")
    weighted.append(recalls(balanced.fit(X[kept], y[kept])))
found = {
    "as it is": np.mean(plain, axis=0),
    "shifted_rates": np.mean(moved, axis=0),
    'class_weight="balanced"': np.mean(weighted, axis=0),
}

fig, ax = plt.subplots(figsize=(8, 3.6))
for place, (name, recall) in enumerate(found.items()):
    ax.bar(np.arange(10) + 0.27 * (place - 1), recall, width=0.25, label=name)
ax.set_xticks(range(10), [f"{k}\nn={count}" for k, count in enumerate(counts)])
ax.set(xlabel="digit, and its training images", ylabel="recall", ylim=(0, 1))
ax.legend(frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
fig.set_label(
    "Recall of each digit, from 140 images down to 11. As it is, the recall of the "
    "rarest digits is far below that of the others; after shifted_rates it is much "
    "higher."
)
tail = {name: recall[7:].mean() for name, recall in found.items()}
mean = {name: recall.mean() for name, recall in found.items()}
for name in found:
    print(f"{name:24s} all digits {mean[name]:.2f}, the three rarest {tail[name]:.2f}")
simple, shifted, balance = tail.values()
assert shifted > max(simple, balance) + 0.1

# %%
# ## What we learnt
#
# Of the three rarest digits the fit as it is found {simple:.0%}, and {shifted:.0%}
# after `shifted_rates`. That one line moves a fitted model to equal shares, and costs
# nothing, since the shares are public. If they are private, `class_weight="balanced"`
# counts the classes for a part of the budget, which so few records hardly repay:
# {balance:.0%} here.
#
# No weight brings back what the noise drowned. Eleven images are few at any epsilon.
# [Which estimator](../guides/estimators.md#rare-classes) says when not to shift.
