"""What each of several processes runs in `test_processes`.

``python processes.py FOLDER INDEX SIZE PORT CASE``; writes ``FOLDER/INDEX.npz``.
"""

import sys
import warnings
from pathlib import Path

import numpy as np

from privfeat import DPSGDClassifier, PrivacyError, PrivacyLedger
from privfeat.distributed import all_processes, initialize
from privfeat.networks import read_folder

PARAMS = {
    "model": "simpleVGG-4(1)-8",
    "noise_multiplier": 1.0,
    "classes": range(2),
    "n_iter": 5,
    "expected_batch_size": 16,
    "microbatch_size": 4,
    "augmentation": "crop_flip",
    "n_copies": 2,
    "checkpoint_every": 2,
}


def made(folder=None, **params):
    kept = None if folder is None else folder / "kept"
    return DPSGDClassifier(checkpoint_dir=kept, **PARAMS | {"random_state": 7} | params)


def read(folder):
    return read_folder(folder / "images", size=8, lazy=True)


def results(clf):
    found = {f"of {name}": leaf for name, leaf in clf.parameters_.items()}
    return found | {"privacy": clf.privacy_.to_json()}


def refused(fit):
    try:
        fit()
    except (PrivacyError, ValueError) as error:
        return str(error)
    return "fitted"


def main(folder, index, size, port, case):
    """Fit as process ``index`` of ``size``."""
    warnings.simplefilter("ignore")
    initialize(
        coordinator_address=f"localhost:{port}", num_processes=size, process_id=index
    )
    X, y, *_ = read(folder)
    if case == "shared":
        with all_processes():
            found = results(made(folder).fit(X, y))
            ledger = PrivacyLedger(folder / "l", dataset="x")
            charged = made(random_state=None, ledger=ledger, expected_batch_size=None)
            found["unseeded"] = charged.fit(X, y).parameters_["head/kernel"]
    elif case == "own":
        part = slice(0, 20) if index == 0 else slice(20, None)
        with all_processes("own"):
            clf = made(expected_batch_size=None, augmentation="none", n_copies=1)
            found = results(clf.fit(X[part], y[part]))
    else:
        with all_processes():
            found = {
                "clip_norm": refused(lambda: made(clip_norm=1.0 + index).fit(X, y)),
                "batches": refused(lambda: made(microbatch_size=4 << index).fit(X, y)),
                "targets": refused(lambda: made().fit(X, np.roll(y, index))),
                "images": refused(lambda: made().fit(X[:][:: 1 - 2 * index], y)),
                "restore": refused(made(folder).restore),
            }
        with all_processes("own"):
            found["twice"] = refused(lambda: made().fit(X, y))
    np.savez(folder / f"{index}.npz", **found)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:5]), sys.argv[5])
