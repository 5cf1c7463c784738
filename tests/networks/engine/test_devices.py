"""Physical batches dealt out to devices: the same sums, and noise once."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

COMMAND = (sys.executable, "-W", "ignore", "-m", "tests.networks.fitting")


def fit_on(n_devices, **params):
    """Fit in a process with so many virtual devices."""
    flags = f"--xla_force_host_platform_device_count={n_devices}"
    done = subprocess.run(
        [*COMMAND, json.dumps(params)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
    )
    result = json.loads(done.stdout)
    assert result["devices"] == n_devices
    return result


@pytest.mark.slow
@pytest.mark.parametrize(
    "params",
    [
        {"engine": "fast", "microbatch_size": 9},
        {"engine": "reference", "microbatch_size": None},
        {"max_group_size": 2, "local_epochs": 2, "local_batch_size": 1},
    ],
)
def test_eight_devices_release_what_one_does(params):
    """A small clip norm bounds every record; were gradients mixed, sums would differ.

    One draw of noise for each step, of one stddev, whatever the number of devices.
    """
    one, eight = (fit_on(n, clip_norm=0.01, **params) for n in (1, 8))
    assert one["draws"] == eight["draws"]
    assert len(one["draws"]) == 2
    for left, right in zip(one["sums"], eight["sums"], strict=True):
        assert np.linalg.norm(left) > 1.0
        np.testing.assert_allclose(right, left, rtol=1e-3, atol=1e-5)
    for name, leaf in one["parameters"].items():
        np.testing.assert_allclose(eight["parameters"][name], leaf, atol=1e-4)
