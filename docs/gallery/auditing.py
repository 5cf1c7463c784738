"""Two false claims, and the audits that find them.

For whoever writes a private fit, or does not believe one. After this page you know
which test of ``privfeat.audit`` finds which mistake, and what none of them can prove.
"""

# %%
# An audit fits a model and looks for what the claim forbids. It uses exact sums, so it
# belongs on data that everyone may see, such as the digits.

from dataclasses import replace

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression

from privfeat import DPFC, DPLeastSquares, audit, open_features

digits = open_features("quickstart/digits.h5")["train"]
X, y = digits.X.read(0, 500), digits.y[:500]

# %%
# ## A sensitivity that is too small
#
# The noise of a sum must fit the most that one record can change it. This estimator
# declares half of that. It runs, it is more accurate, and its statement looks as all
# others do:


class HalfDeclared(DPLeastSquares):
    def _queries(self, shape):
        declared = super()._queries(shape)
        return [replace(q, l2_sensitivity=q.l2_sensitivity / 2) for q in declared]


# %%
# `audit.replay` fits with a record and without it, and compares every sum before the
# noise. A ratio above 1 is a false claim. We leave out 20 records, one after the other:


def ratios(estimator):
    found = [audit.replay(estimator, X, y, record=record) for record in range(20)]
    return [max(movement.ratio for movement in one.movements) for one in found]


honest = ratios(DPLeastSquares(epsilon=1.0, classes=range(10)))
wrong = ratios(HalfDeclared(epsilon=1.0, classes=range(10)))
print(f"honest: at most {max(honest):.3f}")
print(f"half declared: at most {max(wrong):.3f}")

# %%
# ## No noise at all
#
# `audit.audit_one_run` asks nothing of the code. It plants known records, fits once,
# guesses which of them took part, and bounds epsilon from below by the guesses that are
# right. Somebody sells this classifier of scikit-learn as private, at epsilon 1:

plain = LogisticRegression(C=1e5, max_iter=10_000)
few = X[:100], y[:100]
claims = [1.0, 2.0, 4.0, 8.0]
false = audit.audit_one_run(
    plain, *few, epsilon=1.0, delta=1e-5, n_canaries=300, guess_fraction=0.3, seed=0
)
print(false)
private = [
    audit.audit_one_run(DPFC(epsilon=claim, classes=range(10)), X, y, seed=0)
    for claim in claims
]

# %%

fig, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.6))
left.plot(honest, "o", ms=4, label="DPLeastSquares")
left.plot(wrong, "^", ms=4, color="#D55E00", label="half declared")
left.axhline(1.0, color="#555555", ls="--")
left.set(xlabel="record left out", ylabel="moved / declared", ylim=(0, 2.8))
left.legend(frameon=False, ncols=2, loc="upper center")
right.plot(claims, claims, "--", color="#555555", label="as claimed")
right.plot(claims, [one.epsilon_lower for one in private], "o", label="DPFC")
right.plot([1.0], [false.epsilon_lower], "^", color="#D55E00", label="without noise")
right.set(xlabel="claimed epsilon", ylabel="lower bound of the audit")
right.legend(frameon=False)
fig.set_label(
    "Left: sums of the honest estimator move by at most what is declared, those of "
    "the wrong one by up to twice that. Right: lower bounds on epsilon. Those of DPFC"
    " lie below the claim, that of the classifier without noise lies above it."
)
honest_most, wrong_most = max(honest), max(wrong)
assert honest_most <= 1.0 < wrong_most
assert false.epsilon_lower > 1.0

# %%
# ## What we learnt
#
# The wrong sums moved by {wrong_most:.2f} times what was declared, the honest ones by
# at most {honest_most:.3f} times. For the classifier without noise the audit shows,
# with 95 % confidence, an epsilon of at least {false.epsilon_lower:.1f}. The claim was
# 1.
#
# An audit finds mistakes; it proves nothing. `audit_one_run` would not notice half the
# noise, and `replay` sees only what its records show.
# [How it is audited](../guides/audit.md) lists what finds what.
