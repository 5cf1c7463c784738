"""An attack that succeeds without privacy, and fails with it.

For whoever asks what could go wrong without privacy. After this page you have attacked
two models of the same records, and you can attack a model of yours. What an attack
finds on private records is exact: no statement covers it, and it stays at home.
"""

# %%
# A *membership inference* asks of one record: was it among the training data? If the
# training data are the patients of a clinic, the answer alone tells a diagnosis.
#
# We take 150 images of digits as the patients. One of them is unusual: a two that was
# filed as a seven. A model can only be right about it by remembering it.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

from privfeat import DPFC, audit, open_features

digits = open_features("quickstart/digits.h5")
X, y = normalize(digits["train"].X[:]), digits["train"].y[:]
members, others = (X[:150], y[:150].copy()), (X[150:450], y[150:450])
record = int(np.flatnonzero(y[:150] == 2)[0])
members[1][record] = 7

# %%
# ## Without privacy
#
# The attack looks at one number: by how much the score of a record's label exceeds the
# best other score, its *margin*. A model is surer of what it was trained on.

plain = LogisticRegression(C=1e4).fit(*members)
attack = audit.membership(plain, members, others, fpr=0.05)
print(attack)

# %%
# The same with `DPFC`, at epsilon 1. Its statement bounds what *any* attack can reach,
# and the attack is told so:

private = DPFC(epsilon=1.0, classes=range(10)).fit(*members)
defended = audit.membership(private, members, others, fpr=0.05)
print(defended)

# %%
# ## The one record
#
# A stronger attacker knows all other records and wants to know of this one. They train
# models with it and without it, and look where the margins lie.


def margin(model):
    scores = model.decision_function(X[[record]])[0]
    return scores[7] - np.max(np.delete(scores, 7))


def margins(make, n_models):
    """Return margins of models with the record, and of models without it."""
    rest = np.arange(150) != record
    data = members, (members[0][rest], members[1][rest])
    return [[margin(make().fit(*d)) for _ in range(n_models)] for d in data]


bare = margins(lambda: LogisticRegression(C=1e4), 1)
noisy = margins(lambda: DPFC(epsilon=1.0, classes=range(10)), 40)
fig, (left, right) = plt.subplots(1, 2, figsize=(8, 3.4))
for values, name, colour in zip(
    bare, ("with the record", "without it"), ("#D55E00", "#0072B2"), strict=True
):
    left.axvline(values[0], color=colour, lw=4, label=name)
left.set(title="logistic regression", xlabel="margin of the record", yticks=[])
left.margins(x=0.3)
left.legend(frameon=False)
right.hist(noisy, bins=15, color=["#D55E00", "#0072B2"])
right.set(title="DPFC, ε = 1, 40 fits of each", xlabel="margin of the record")
fig.set_label(
    "Left: without privacy the margin with the record is positive and the one without"
    " it is negative, far apart. Right: with privacy both histograms lie on each "
    "other."
)
gap = bare[0][0] - bare[1][0]
overlap = np.mean(np.greater.outer(noisy[0], noisy[1]))
assert bare[0][0] > 0 > bare[1][0]
assert attack.auc > 0.6
assert 0.2 < overlap < 0.8

# %%
# ## What we learnt
#
# Without privacy the record moves its own margin by {gap:.1f}, from the wrong side of
# zero to the right one: one look at the model, and the attacker knows. With epsilon 1,
# a model with the record has the larger margin in {overlap:.0%} of all pairs, where a
# coin has 50 %. The simple attack on all members reaches an area under the ROC curve of
# {attack.auc:.2f} without privacy, and {defended.auc:.2f} with it, where
# {defended.auc_bound:.2f} is the most that the statement allows.
#
# An attack that fails proves nothing: a better one may come. The statement holds
# against all of them. [How it is audited](../guides/audit.md) has the tools for your
# own models.
