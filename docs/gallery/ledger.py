"""One budget over a project.

For whoever fits more than once on the same people. After this page you can let a ledger
add up what was spent, and you know why it is less than the sum.
"""

# %%
# A project rarely fits once. Here it has an epsilon of 3 for one data set, whoever
# fits. The ledger is a file:

import matplotlib.pyplot as plt
import numpy as np

from privfeat import (
    DPFC,
    BudgetExceededError,
    DPLeastSquares,
    PrivacyLedger,
    open_features,
)

digits = open_features("quickstart/digits.h5")
train = digits["train"]
PrivacyLedger("project.ledger", dataset="digits", epsilon=3.0, delta=1e-5)
ledger = PrivacyLedger("project.ledger", dataset="digits")

# %%
# In spring a colleague tries the fastest estimator. In summer you fit a better one. In
# autumn somebody wants more of the same. Everyone passes `ledger=`, and nothing else
# changes:

shared = {"classes": range(10), "ledger": ledger}
fits = [
    ("least squares", DPLeastSquares(epsilon=0.5, **shared)),
    ("DPFC", DPFC(epsilon=1.5, **shared)),
    ("DPFC again", DPFC(epsilon=1.5, **shared)),
    ("one more", DPFC(epsilon=1.5, **shared)),
    ("once more", DPFC(epsilon=1.5, **shared)),
]
asked, spent = [], []
for name, estimator in fits:
    try:
        estimator.fit(train.X, train.y)
    except BudgetExceededError as error:
        print(f"{name}: {error}")
        break
    asked.append(estimator.epsilon)
    spent.append(ledger.spent.epsilon)
    print(f"{name}: epsilon {estimator.epsilon}, spent in all {spent[-1]:.2f}")

# %%
# The fit that would be one too many is refused before it draws anything, and costs
# nothing. What is left can still be used:

left = ledger.remaining
last = DPFC(epsilon=left.epsilon, delta=left.delta, **shared).fit(train.X, train.y)
print(f"the last fit had epsilon {left.epsilon:.2f}; now {ledger.spent.epsilon:.2f}")

# %%

names = [name for name, _ in fits[: len(spent)]] + ["what is left"]
fig, ax = plt.subplots(figsize=(7, 3.6))
ax.plot(names, np.cumsum([*asked, left.epsilon]), "o--", label="sum of the epsilons")
ax.plot(names, [*spent, ledger.spent.epsilon], "s-", label="spent, as the ledger says")
ax.axhline(3.0, color="#555555", lw=1, label="budget")
ax.set(ylabel="epsilon", ylim=(0, None))
ax.legend(frameon=False)
fig.set_label(
    "Two lines over the fits of the project: the sum of the epsilons passes the "
    "budget of 3 early; what the ledger says was spent stays below until the last "
    "fit."
)
total = sum(asked) + left.epsilon
assert ledger.spent.epsilon <= 3.0 < total

# %%
# ## What we learnt
#
# The epsilons add up to {total:.1f}, and all of them together cost
# {ledger.spent.epsilon:.2f}: of Gaussian noise the squares add up, roughly. Nobody had
# to calculate. The refused fit is not in the history, the others are:

for charge in ledger.history:
    print(charge.estimator, charge.status)

# %%
# [A ledger for a team](../guides/ledger.md) has the command line, and databases for
# several hosts.
