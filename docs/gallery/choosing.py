"""Choosing epsilon before any record is read.

For whoever must propose a budget to others. After this page you can show what an
epsilon protects and what it costs, from three public numbers.
"""

# %%
# ## What it protects
#
# Somebody knows all records but one, sees the model, and guesses whether that one took
# part. At even odds they are right with a probability of at most
# `1 / (1 + exp(-epsilon))`, and `delta` more.

import matplotlib.pyplot as plt
import numpy as np

from privfeat.analysis.planning import plan

epsilons = np.geomspace(0.05, 10, 30)
guess = 1 / (1 + np.exp(-epsilons))

# %%
# ## What it costs
#
# `plan` takes the number of records, features and classes, roughly. It reads no record.
# It knows the noise of each release exactly, and from it how many predictions the noise
# alone turns wrong.

sizes = [2_000, 20_000, 200_000]
lost = {
    n: [
        plan(n, 768, 10, epsilon=epsilon, estimators=["DPFC"])
        .estimators[0]
        .expected_loss
        for epsilon in epsilons
    ]
    for n in sizes
}
print(plan(20_000, 768, 10, epsilon=1.0).reason)

# %%

fig, ax = plt.subplots(figsize=(7, 3.8))
ax.plot(epsilons, guess, color="#555555", lw=3, label="a guess is right in at most")
for n, style in zip(sizes, (":", "--", "-"), strict=True):
    ax.plot(epsilons, lost[n], style, label=f"lost to noise, of {n:,} records")
ax.set(xscale="log", xlabel="epsilon", ylabel="probability", ylim=(0, 1.02))
ax.set_xticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"])
ax.legend(frameon=False, fontsize=9.5, loc="upper left", bbox_to_anchor=(1.0, 1.0))
fig.set_label(
    "Against epsilon: the probability that a guess is right rises from one half to "
    "one. The part of predictions lost to noise falls, and falls earlier with more "
    "records."
)
at_one = np.argmin(abs(epsilons - 1.0))
few, some, many = (lost[n][at_one] for n in sizes)
right = 1 / (1 + np.exp(-1.0))
assert few > some > many

# %%
# ## What we learnt
#
# At epsilon 1 a guess is right in at most {right:.0%} of cases. The noise then turns
# about {few:.0%} of the predictions wrong with 2,000 records, {some:.2%} with 20,000
# and {many:.2%} with 200,000. Take the smallest epsilon whose loss you can bear. The
# loss is rough, since `plan` must assume how far apart classes are; the noise is exact.
# [Choosing epsilon](../guides/epsilon.md) is the guide, `privfeat plan` the command.
