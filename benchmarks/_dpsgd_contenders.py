"""The contenders of ``dpsgd_speed.py --compare``, each run in a fresh process.

    python _dpsgd_contenders.py "opacus hooks" NETWORK BATCH PART REPEATS

prints seconds of a step and peaks of memory as JSON. The interpreter of opacus needs
neither privfeat nor its dependencies.
"""

import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

from _processes import peak_mib

SHAPES = {
    "sample_convnet": (28, 28, 1),
    "simpleVGG-32(2)-64(2)-128(2)-128": (32, 32, 3),
}
JAX = {"jax without privacy": "non-private", "privfeat": "fast", "vmap": "reference"}
TORCH = ("torch without privacy", "opacus hooks", "opacus ghost")


def main() -> None:
    """Print the measurements of one contender as JSON."""
    name, network = sys.argv[1:3]
    batch, part, repeats = map(int, sys.argv[3:])
    warnings.simplefilter("ignore")
    made = jax_step if name in JAX else torch_step
    step, loaded = made(name, network, batch, part)
    step()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    found = {"seconds": min(seconds), "peak_mib": peak_mib(), "loaded_mib": loaded}
    print(json.dumps(found))


def jax_step(
    name: str, network: str, batch: int, part: int
) -> tuple[Callable[[], None], float]:
    """Return a step by one of our engines, and the memory of imports."""
    from _dpsgd_steps import make_step

    loaded = peak_mib()
    return make_step(network, SHAPES[network], batch, part, JAX[name])[0], loaded


def torch_step(
    name: str, network: str, batch: int, _: int
) -> tuple[Callable[[], None], float]:
    """Return a step by torch, with or without opacus."""
    import torch
    from torch.nn import CrossEntropyLoss

    if name != "torch without privacy":
        import opacus  # noqa: F401
    loaded = peak_mib()
    torch.manual_seed(0)
    height, width, channels = SHAPES[network]
    inputs = torch.randn(batch, channels, height, width)
    labels = torch.randint(0, 10, (batch,))
    model, loss = torch_network(network), CrossEntropyLoss()
    optimizer: Any = torch.optim.SGD(model.parameters(), lr=0.1)
    noise = {
        "noise_multiplier": 1.0,
        "max_grad_norm": 1.0,
        "expected_batch_size": batch,
    }
    if name == "opacus hooks":
        from opacus.grad_sample import GradSampleModule
        from opacus.optimizers import DPOptimizer

        model = GradSampleModule(model)
        optimizer = DPOptimizer(optimizer, **noise)
    elif name == "opacus ghost":
        from opacus.grad_sample.grad_sample_module_fast_gradient_clipping import (
            GradSampleModuleFastGradientClipping,
        )
        from opacus.optimizers.optimizer_fast_gradient_clipping import (
            DPOptimizerFastGradientClipping,
        )
        from opacus.utils.fast_gradient_clipping_utils import (
            DPLossFastGradientClipping,
        )

        model = GradSampleModuleFastGradientClipping(
            model, max_grad_norm=1.0, use_ghost_clipping=True
        )
        optimizer = DPOptimizerFastGradientClipping(optimizer, **noise)
        loss = DPLossFastGradientClipping(model, optimizer, loss)

    def step() -> None:
        optimizer.zero_grad()
        loss(model(inputs), labels).backward()
        optimizer.step()

    return step, loaded


def torch_network(network: str) -> Any:
    """Return the network of ``privfeat.networks.models.small`` in torch."""
    from torch import nn

    if network == "sample_convnet":
        return nn.Sequential(
            nn.Conv2d(1, 16, 8, stride=2, padding=3), nn.ReLU(), nn.MaxPool2d(2, 1),
            nn.Conv2d(16, 32, 4, stride=2), nn.ReLU(), nn.MaxPool2d(2, 1),
            nn.Flatten(), nn.Linear(512, 32), nn.ReLU(), nn.Linear(32, 10),
        )  # fmt: skip
    layers, channels = [], 3
    for size in (32, 64, 128):
        for _ in range(2):
            layers += [nn.Conv2d(channels, size, 3, padding=1), nn.Tanh()]
            channels = size
        layers.append(nn.MaxPool2d(2))
    layers += [nn.Flatten(), nn.Linear(2048, 128), nn.Tanh(), nn.Linear(128, 10)]
    return nn.Sequential(*layers)


if __name__ == "__main__":
    main()
