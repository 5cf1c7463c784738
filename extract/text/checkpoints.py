"""Sentence encoders as folders of safe files: configurations, words and safetensors."""

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from huggingface_hub import snapshot_download
from huggingface_hub.errors import HFValidationError

from ..errors import ExtractError, one_line
from ..hub import quick_to_fail

# Nothing else of a folder is read: no pickle, and no code.
SAFE = ("*.json", "*.safetensors", "*.txt", "*.model")
_NOT_READ = ("onnx", "openvino")  # the same weights for other programs
_LICENSE = re.compile(r"\A---\n(?:.*\n)*?license:\s*([\w.-]+)\s*\n(?:.*\n)*?---")


def find_checkpoint(model: str) -> Path:
    """Return the folder of a sentence encoder, fetched from the hub where needed.

    ExtractError if there is no such folder, and the hub has none of that name or does
    not answer.
    """
    if Path(model).is_dir():
        return Path(model)
    try:
        with quick_to_fail():
            return Path(
                snapshot_download(
                    model,
                    allow_patterns=[*SAFE, "README.md"],
                    ignore_patterns=[f"{folder}/*" for folder in _NOT_READ],
                )
            )
    except (OSError, ValueError, HFValidationError) as error:
        raise ExtractError(
            f"--model must be the folder of a sentence encoder, or its name on the "
            f"hub, got {model!r}, which is no folder and cannot be fetched: "
            f"{one_line(error, 160)} Check the name and the network connection, or "
            "pass a folder."
        ) from error


def safe_files(folder: Path) -> list[Path]:
    """Return the files of an encoder that are read, by their paths in the folder.

    ExtractError if no weights are among them, or they are quantized.
    """
    found = {path.relative_to(folder) for kind in SAFE for path in folder.rglob(kind)}
    files = sorted(path for path in found if path.parts[0] not in _NOT_READ)
    if not any(path.suffix == ".safetensors" for path in files):
        raise ExtractError(
            f"--model must have its weights in .safetensors files, but {folder} holds "
            "none. Other formats may run code, and are not read: convert them first."
        )
    configured = [folder / path for path in files if path.name == "config.json"]
    if any(b'"quantization_config"' in path.read_bytes() for path in configured):
        raise ExtractError(
            "--model must have weights that are not quantized: others may round a "
            "text by the numbers of those beside it. Pass the encoder that it was made "
            "of."
        )
    return files


@contextmanager
def only_safe_files(folder: Path) -> Iterator[Path]:
    """Yield a folder that links to the files that are read, and holds no others."""
    with TemporaryDirectory(prefix="privfeat-") as name:
        for file in safe_files(folder):
            link = Path(name, file)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to((folder / file).resolve())
        yield Path(name)


def digest_of_folder(folder: Path) -> str:
    """Return the SHA-256 of names and contents of the files that are read."""
    digest = hashlib.sha256()
    for file in safe_files(folder):
        with (folder / file).open("rb") as content:
            found = hashlib.file_digest(content, "sha256").hexdigest()
        digest.update(f"{file.as_posix()} {found}\n".encode())
    return digest.hexdigest()


def license_of(folder: Path) -> str | None:
    """Return the licence that the model card names, None if there is none."""
    card = folder / "README.md"
    if not card.is_file():
        return None
    found = _LICENSE.search(card.read_text(encoding="utf-8", errors="replace"))
    return found[1] if found else None
