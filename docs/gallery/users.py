"""Several records of one person.

For whoever has patients with several images, or customers with several orders. After
this page you can protect the person, not the row, and know what that costs.
"""

# %%
# A statement protects one *record*. Who has ten records is then protected far less than
# who has one. With `groups` in `fit` the unit is the *user*: all records of a person
# together. Here each person wrote four of the digits.

import matplotlib.pyplot as plt
import numpy as np

from privfeat import DPFC, open_features

digits = open_features("quickstart/digits.h5")
train, test = digits["train"], digits["test"]
people = np.arange(len(train.y)) // 4
of_records = DPFC(epsilon=2.0, classes=range(10)).fit(train.X, train.y)
of_users = DPFC(epsilon=2.0, classes=range(10), max_group_size=4)
of_users.fit(train.X, train.y, groups=people)
for clf in of_records, of_users:
    print(f"epsilon {clf.privacy_.epsilon:g}, for one {clf.privacy_.unit}")

# %%
# What does the first statement say of a person with four records? All four may go, so
# the same noise hides a change four times as large. In Gaussian DP `mu` is then four
# times as large, and epsilon grows faster than that:

from privfeat.core.accounting.conversions import gaussian_epsilon

together = gaussian_epsilon(4 * of_records.privacy_.mu, delta=1e-5)
print(f"one record: epsilon 2.0; four records of one person: epsilon {together:.1f}")

# %%
# So compare at one epsilon for a person. Either divide `mu` by the number of records,
# and `rho` by its square; or name the people. Each point is a mean of five fits.

rho, sizes = of_users.privacy_.rho, [1, 2, 4, 8]


def score(size, named):
    found = []
    for _ in range(5):
        if named:
            clf = DPFC(rho=rho, max_group_size=size, classes=range(10))
            clf.fit(train.X, train.y, groups=np.arange(len(train.y)) // size)
        else:
            clf = DPFC(rho=rho / size**2, classes=range(10)).fit(train.X, train.y)
        found.append(clf.score(test.X, test.y))
    return np.mean(found)


named = [score(size, True) for size in sizes]
divided = [score(size, False) for size in sizes]
fig, ax = plt.subplots(figsize=(6.5, 3.4))
ax.plot(sizes, named, "o-", label="people named: groups=")
ax.plot(sizes, divided, "s-", label="a smaller budget for records")
ax.set(xlabel="records of each person", ylabel="accuracy", xticks=sizes, ylim=(0, 1))
ax.legend(frameon=False, loc="lower left")
fig.set_label(
    "Accuracy against the number of records of each person, at epsilon 2 for a "
    "person. With named people it falls slowly, with a divided budget steeply."
)
assert named[-1] > divided[-1] + 0.1

# %%
# ## What we learnt
#
# A fit that protects records at epsilon 2 gives a person with four of them only epsilon
# {together:.1f}. With eight records each, naming the people has an accuracy of
# {named[3]:.2f}; dividing the budget has {divided[3]:.2f}. The fit scales down what a
# person adds in all, so the noise does not grow with the number of records.
# [Several records of one person](../guides/users.md) says more.
