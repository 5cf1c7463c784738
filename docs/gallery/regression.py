"""Predict a number, with intervals for the coefficients.

For whoever asks how a quantity depends on others, such as an epidemiologist. After this
page you can fit a private regression, and say how far its coefficients may be off.
"""

# %%
# Of 442 patients with diabetes we have six measurements, and by how much the disease
# progressed in a year. What everyone may know of the columns is declared: ranges from
# the code book, not from the patients.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression

from privfeat import DPLeastSquaresRegressor, PublicColumns

names = {"s5": "triglycerides (log)", "s6": "glucose", "bp": "blood pressure"}
table, y = load_diabetes(scaled=False, as_frame=True, return_X_y=True)
table = table.rename(columns=names)
bounds = {
    "age": [18, 90],
    "sex": [1, 2],
    "bmi": [15, 45],
    "blood pressure": [60, 140],
    "triglycerides (log)": [3, 6.5],
    "glucose": [50, 140],
}
columns = PublicColumns(
    {k: {"kind": "numeric", "bounds": b} for k, b in bounds.items()}
)
X = columns.fit_transform(table[list(bounds)])

# %%
# Each feature is now in [-1, 1]. A coefficient says by how much the progression changes
# over half of the range of a column.

model = DPLeastSquaresRegressor(
    epsilon=4.0, target_bounds=(0, 400), clip_norm=columns.clip_norm
).fit(X, y)
intervals = model.coef_interval(0.95)
print(pd.DataFrame(intervals, bounds, ["low", "high"]).round())

# %%
# The intervals follow from what was released: they cost nothing, and hold both the
# noise and the sampling of the patients. Beside them the coefficients without privacy:

plain = LinearRegression().fit(X, y)
places = np.arange(len(bounds))
fig, ax = plt.subplots(figsize=(7, 3.6))
ax.hlines(places, *intervals.T, lw=3)
ax.plot(model.coef_, places, "o", color="white", mec="#1F77B4", mew=2, label="private")
ax.plot(plain.coef_, places, "x", color="#D55E00", mew=2, label="without privacy")
ax.axvline(0, color="#555555", lw=1)
ax.set_yticks(places, list(bounds))
ax.set(xlabel="coefficient")
ax.legend(frameon=False)
fig.set_label(
    "Six coefficients with 95 % intervals, and the coefficients without privacy "
    "beside them. Some intervals lie to the right of zero, others hold it."
)
score, best = model.score(X, y), plain.score(X, y)
low, high = intervals.T
sure = ", ".join(np.array(list(bounds))[low * high > 0]) or "none"
assert score > 0.3

# %%
# ## What we learnt
#
# At epsilon 4 the regression explains {score:.0%} of the variance, and {best:.0%}
# without privacy. Columns whose interval leaves out zero: {sure}. Of the others the
# releases do not say whether they raise or lower the progression, and the intervals
# show it. [Which estimator](../guides/estimators.md#numbers) says how to choose
# `clip_norm` and bounds.
