"""Load weights from a file, strictly, and say which weights were used."""

import hashlib
import pickle
from pathlib import Path
from typing import Any

import torch

from .errors import ExtractError, one_line


def load_checkpoint(model: torch.nn.Module, path: Path, classifier: Any) -> None:
    """Load a state dict from ``.safetensors`` or a torch file into ``model``.

    Torch files are read with ``weights_only=True``: no code runs. Entries of the layers
    that ``classifier`` names are left out if the model, a backbone, has none.
    ExtractError if the file is missing or unreadable, or does not fit the model
    exactly.
    """
    from safetensors import SafetensorError
    from timm.models import load_state_dict

    if not path.is_file():
        raise ExtractError(f"--checkpoint must be a file, but there is no {path}.")
    try:
        state = load_state_dict(str(path), device="cpu", weights_only=True)
    except (
        OSError,
        RuntimeError,
        ValueError,
        KeyError,
        EOFError,
        AttributeError,
        pickle.UnpicklingError,
        SafetensorError,
    ) as error:
        raise ExtractError(
            f"--checkpoint must be a .safetensors or .pth file of weights, but {path} "
            f"cannot be read: {one_line(error, 120)}"
        ) from error
    heads = (classifier,) if isinstance(classifier, str) else tuple(classifier or ())
    own = model.state_dict()
    state = {
        name: value
        for name, value in state.items()
        if name in own or not name.startswith(tuple(f"{head}." for head in heads))
    }
    missing, foreign = sorted(own.keys() - state), sorted(state.keys() - own.keys())
    shapes = [
        f"{name} {_shape(state[name])} instead of {_shape(own[name])}"
        for name in sorted(own.keys() & state.keys())
        if _shape(state[name]) != _shape(own[name])
    ]
    problems = [
        f"{len(names)} {what} (first: {names[0]})"
        for names, what in (
            (missing, "missing"),
            (foreign, "unexpected"),
            (shapes, "of another shape"),
        )
        if names
    ]
    if problems:
        raise ExtractError(
            f"--checkpoint must fit the model exactly, but {path.name} has entries: "
            f"{', '.join(problems)}. Check --model and --model-kwargs."
        )
    model.load_state_dict(state, strict=True)


def _shape(value: Any) -> tuple[int, ...] | str:
    return tuple(value.shape) if isinstance(value, torch.Tensor) else "no tensor"


def digest_of_file(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of_state(model: torch.nn.Module) -> str:
    """Return the SHA-256 of names, types, shapes and bytes of all weights."""
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        value = value.detach().cpu().contiguous()
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        digest.update(value.flatten().view(torch.uint8).numpy())
    return digest.hexdigest()
