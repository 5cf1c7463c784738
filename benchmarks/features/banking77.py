"""Sentence embeddings of Banking77, from an archive of NumPy to a feature file.

The archive has the embeddings as ``X_train``, ``y_train``, ``X_test``, ``y_test`` and
``class_names``, of any frozen encoder. From the repository:

    python benchmarks/features/banking77.py banking77_minilm.npz banking77.h5
"""

import argparse
from pathlib import Path

import numpy as np

from privfeat.data import write_features


def main() -> None:
    """Write the splits ``train`` and ``test``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("archive", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    with np.load(args.archive, allow_pickle=False) as kept:
        splits = {
            name: (kept[f"X_{name}"], kept[f"y_{name}"].astype(np.int64))
            for name in ("train", "test")
        }
        names = kept["class_names"].tolist()
    write_features(
        args.out,
        splits,
        class_names=names,
        metadata={"dataset": "banking77"},
        dtype="float16",
    )
    print(f"{args.out}: {len(splits['train'][0])} + {len(splits['test'][0])} rows")


if __name__ == "__main__":
    main()
