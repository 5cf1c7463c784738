"""What noise does to an average.

For whoever has never seen a private result. After this page you know what is released
instead of a sum, and why more records help more than a larger epsilon.
"""

# %%
# The data are 1,797 images of digits, each of 8 by 8 pixels. `DPNearestMean` is the
# simplest classifier of privfeat: it releases the sum of the images of each digit, with
# noise. Its coefficients are averages, so they can be looked at.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from privfeat import DPNearestMean

digits = load_digits()
X, y = digits.data, digits.target
epsilons = [0.1, 1.0, 8.0]
models = {
    epsilon: DPNearestMean(epsilon=epsilon, classes=range(10)).fit(X, y)
    for epsilon in epsilons
}
print(models[1.0].privacy_)

# %%
# The statement lists what was released. *L2 sensitivity* is the most that one image can
# change a sum. The noise is as large as the *noise multiplier* times that. So one image
# drowns in the noise, and an average of many does not.

fig, axes = plt.subplots(len(epsilons), 10, figsize=(8, 2.9))
for row, epsilon in zip(axes, epsilons, strict=True):
    for ax, image in zip(row, models[epsilon].coef_, strict=True):
        ax.imshow(image[:64].reshape(8, 8), cmap="gray")
        ax.set(xticks=[], yticks=[])
    row[0].set_ylabel(f"ε = {epsilon:g}", rotation=0, ha="right", va="center")
fig.set_label(
    "Average images of the ten digits. At epsilon 8 they are clear, at epsilon 1 "
    "grainy, at epsilon 0.1 they are noise."
)

# %%
# ## More records
#
# The noise of a sum does not grow with the number of records, but the sum does. Here
# are models of a quarter of the images, of half, and of all, at epsilon 1. Each point
# is the mean of ten fits. Such a comparison is for public data alone: of private
# records, each fit would cost its epsilon.


def accuracy(n, epsilon):
    scores = [
        DPNearestMean(epsilon=epsilon, classes=range(10))
        .fit(X[:n], y[:n])
        .score(X[1400:], y[1400:])
        for _ in range(10)
    ]
    return np.mean(scores)


sizes = [350, 700, 1400]
curves = {epsilon: [accuracy(n, epsilon) for n in sizes] for epsilon in epsilons}
fig, ax = plt.subplots(figsize=(6, 3.4))
for epsilon, marker in zip(epsilons, "os^", strict=True):
    ax.plot(sizes, curves[epsilon], marker=marker, label=f"ε = {epsilon:g}")
ax.set(xlabel="records", ylabel="accuracy", xticks=sizes, ylim=(0, 1))
ax.legend(frameon=False)
fig.set_label(
    "Accuracy against the number of records, a line for each epsilon; all rise."
)
few, many = curves[1.0][0], curves[1.0][-1]
assert few < many

# %%
# ## What we learnt
#
# At epsilon 1 the accuracy rose from {few:.0%} with 350 images to {many:.0%} with
# 1,400. Whoever can wait for more records needs a smaller epsilon.
# [Choosing epsilon](../guides/epsilon.md) goes on from here.
