"""What tests of several processes compare."""

import numpy as np

from privfeat.data import open_features

# The beginning of a script: its process is to kill itself after batches on disk.
DYING = """
import os, signal
from functools import partialmethod
from privfeat.data import FeatureWriter

def die_after(batches):
    FeatureWriter.__init__ = partialmethod(FeatureWriter.__init__, flush_seconds=0.0)
    append, left = FeatureWriter.append, iter(range(batches - 1))
    def append_and_die(self, *args, **kwargs):
        append(self, *args, **kwargs)
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
    FeatureWriter.append = append_and_die
"""


def assert_same(path, single):
    """Rows, labels and attributes are those of the single process."""
    with open_features(path) as file:
        file.verify()
        assert file.class_names == single.class_names
        rest = dict(file.metadata)
        assert rest.pop("shards")
        assert rest == single.metadata
        assert set(file) == set(single)
        for name, split in single.items():
            np.testing.assert_array_equal(file[name].X[:], split.X[:])
            np.testing.assert_array_equal(file[name].y, split.y)
            stored = file[name].metadata
            assert stored["file_list_sha256"] == split.metadata["file_list_sha256"]
            assert stored["n_skipped"] == split.metadata["n_skipped"]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def one_batch_of(plant):
    """Return batches of scattering that end after the first, as by Ctrl-C."""
    batches = plant.genuine("batches of scattering")

    def interrupted(self, images, *, start, stop):
        yield next(iter(batches(self, images, start=start, stop=stop)))
        raise KeyboardInterrupt

    return interrupted
