"""A network from scratch, beside features and a linear model.

For whoever wonders whether to train a whole network privately. After this page you have
seen both at the same budget, and know which to try first.
"""

# %%
# DP-SGD trains every layer: each step clips the gradient of each record and adds noise.
# A frozen extractor needs no private record at all, and one linear layer is left to
# fit. Here is a small convolutional network on the images of digits, and `DPFC` on
# features by wavelets of the same images. Neither has seen any image before.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from privfeat import DPFC, DPSGDClassifier, open_features

digits = load_digits()
images = (15 * digits.images[..., None]).astype(np.uint8)
is_test = np.arange(len(images)) % 5 == 4  # as in the file of features
features = open_features("quickstart/digits.h5")
train, test = features["train"], features["test"]

# %%

epsilons = [0.5, 2.0, 8.0]
from_scratch, from_features = [], []
for epsilon in epsilons:
    network = DPSGDClassifier(
        model="simpleVGG-16(2)-32",
        epsilon=epsilon,
        classes=range(10),
        epochs=15,
        expected_batch_size=512,
    ).fit(images[~is_test], digits.target[~is_test])
    from_scratch.append(network.score(images[is_test], digits.target[is_test]))
    clf = DPFC(epsilon=epsilon, classes=range(10)).fit(train.X, train.y)
    from_features.append(clf.score(test.X, test.y))

fig, ax = plt.subplots(figsize=(6.5, 3.5))
places = np.arange(len(epsilons))
for shift, scores, name in (
    (-0.2, from_scratch, "DP-SGD, from scratch"),
    (0.2, from_features, "DPFC on features"),
):
    bars = ax.bar(places + shift, scores, width=0.38, label=name)
    ax.bar_label(bars, fmt="%.2f", padding=2)
ax.set_xticks(places, [f"ε = {epsilon:g}" for epsilon in epsilons])
ax.set(ylabel="accuracy", ylim=(0, 1.18), yticks=[0, 0.5, 1])
ax.legend(frameon=False, ncols=2, loc="upper center")
fig.set_label(
    "Accuracy of both at three epsilons. At the smallest the linear model on features "
    "is ahead; at the largest both are close."
)
assert from_features[0] > from_scratch[0]

# %%
# ## What we learnt
#
# At epsilon 0.5 the network reached {from_scratch[0]:.2f}, and the linear model
# {from_features[0]:.2f}. At epsilon 8 it was {from_scratch[2]:.2f} and
# {from_features[2]:.2f}. A network has thousands of parameters, and each step adds
# noise to all of them. Begin with features. Where they are not enough,
# [start from public weights](../guides/networks.md#public-weights).
