"""diffprivlib on rows in a file: run by ``tables.py``, in an environment that has it.

It needs an older scikit-learn than privfeat. ``_diffprivlib.py FILE.npz SEED EPSILON
...`` prints, as JSON, the accuracy on the test rows for each epsilon, and for each norm
that rows are clipped to.
"""

import json
import math
import sys
import warnings

import numpy as np

FACTORS = (0.03, 0.1, 0.3, 1.0)  # of the square root of the number of features


def main() -> None:
    from diffprivlib.models import LogisticRegression, StandardScaler
    from sklearn.pipeline import make_pipeline

    warnings.filterwarnings("ignore")
    path, seed = sys.argv[1], int(sys.argv[2])
    with np.load(path) as file:
        X, y, T, t = (file[name] for name in ("X", "y", "T", "t"))
    found: dict[str, dict[str, float]] = {}
    for given in sys.argv[3:]:
        third = float(given) / 3
        for factor in FACTORS:
            norm, bounds = factor * math.sqrt(X.shape[1]), (-1.0, 1.0)
            private = make_pipeline(
                StandardScaler(epsilon=third, bounds=bounds, random_state=seed),
                LogisticRegression(
                    epsilon=2 * third, data_norm=norm, random_state=seed
                ),
            )
            score = private.fit(X, y).score(T, t)
            found.setdefault(given, {})[str(factor)] = score
    print(json.dumps(found))


if __name__ == "__main__":
    main()
