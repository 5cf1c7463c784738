"""Feature files: the HDF5 store that carries features from extraction to training.

``open_features`` reads a file lazily and refuses one that is not complete.
``write_features`` saves arrays as such a file; ``FeatureWriter`` does so in pieces
and survives being killed. ``join_features`` joins such files without copying them.
``open_images`` gives the images of an HDF5 file, which are read as they are used.
``read_table`` reads a table of records, such as a CSV file, as a data frame.
"""

from privfeat.data.images import ImageFile, LazyImages, open_images
from privfeat.data.lazy import LazyFeatures
from privfeat.data.reader import FeatureFile, FeatureSplit, open_features
from privfeat.data.schema import FORMAT, FORMAT_VERSION, FeatureFileError
from privfeat.data.tables.frames import read_table
from privfeat.data.writing.arrays import write_features
from privfeat.data.writing.joining import join_features
from privfeat.data.writing.writer import FeatureWriter

__all__ = [
    "FORMAT",
    "FORMAT_VERSION",
    "FeatureFile",
    "FeatureFileError",
    "FeatureSplit",
    "FeatureWriter",
    "ImageFile",
    "LazyFeatures",
    "LazyImages",
    "join_features",
    "open_features",
    "open_images",
    "read_table",
    "write_features",
]
