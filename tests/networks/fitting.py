"""One fit on as many devices as this process was given; prints what it released."""

import json
import sys

import jax
import numpy as np

from privfeat import DPSGDClassifier
from privfeat.core.noise import draws as noise
from privfeat.core.noise.gaussian_mechanism import GaussianMechanism


def main(params):
    draws, sums = [], []
    gaussian, release = noise.gaussian, GaussianMechanism.release

    def counted(key, shape, stddev):
        draws.append(stddev)
        return gaussian(key, shape, stddev)

    def watched(self, name, exact, **options):
        sums.append(exact.value.tolist())
        return release(self, name, exact, **options)

    noise.gaussian, GaussianMechanism.release = counted, watched
    draw = np.random.default_rng(3)
    # more users than a step draws
    groups = np.arange(30) % 25 if "max_group_size" in params else None
    X, y = draw.normal(size=(30, 5)), draw.integers(0, 3, 30)
    clf = DPSGDClassifier(
        model="mlp",
        classes=range(3),
        noise_multiplier=1.0,
        n_iter=2,
        expected_batch_size=20,
        random_state=1,
        **params,
    ).fit(X, y, groups)
    parameters = {name: leaf.tolist() for name, leaf in clf.parameters_.items()}
    return {
        "devices": jax.local_device_count(),
        "draws": draws,
        "sums": sums,
        "parameters": parameters,
    }


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
