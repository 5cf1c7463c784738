"""Find what turns images or texts into features: the one file that knows them all."""

import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol

from .arguments import SCATTERING, Options
from .errors import ExtractError, one_line
from .ranks import Rank
from .text.options import NGRAMS

LIBRARIES = tuple(
    "privfeat numpy h5py torch torchvision timm pillow kymatio".split()
)  # of images
OF_TEXTS = tuple(
    "privfeat numpy h5py scikit-learn torch sentence-transformers transformers "
    "tokenizers".split()
)


class Extractor(Protocol):
    """What turns images, or texts, into features."""

    n_features: int
    metadata: dict[str, Any]
    arguments: dict[str, Any]
    device_kind: list[str]  # what decides how it rounds, beside the processor

    def batches(self, images: Any, *, start: int, stop: int) -> Any:
        """Yield `FeatureBatch` objects in order."""
        ...


def make_extractor(options: Options, rank: Rank) -> Extractor:
    """Return the extractor that the options ask for.

    ExtractError if a package is missing, or an argument of the extractor does not fit.
    """
    model = options.networks[0].model
    if model == NGRAMS:
        from .text.ngrams import NgramExtractor

        return NgramExtractor(options)
    if model == SCATTERING and not options.text:
        from .scattering import ScatteringExtractor

        return ScatteringExtractor(options)
    try:
        made: Extractor = _kind_on_torch(options)(options, rank)
        return made
    except ImportError as error:
        needs, extra, instead = (
            ("sentence-transformers", "text", NGRAMS)
            if options.text
            else ("torch and timm", "extract", SCATTERING)
        )
        raise ExtractError(
            f"--model {model} needs {needs}, which are not "
            f"installed ({error}). Run pip install 'privfeat[{extra}]', or use --model "
            f"{instead}."
        ) from error


def _kind_on_torch(options: Options) -> Any:
    """Return the class of extractors that run on torch.

    ExtractError if torch and what is built on it do not fit each other.
    """
    try:
        if options.text:
            from .text.encoder import EncoderExtractor

            return EncoderExtractor
        from .network import NetworkExtractor
    except (AttributeError, OSError, RuntimeError) as error:
        others = "sentence-transformers" if options.text else "torchvision"
        raise ExtractError(
            f"torch and {others} must be builds that fit each other, but cannot be "
            f"imported: {one_line(error)} Install torch and torchvision by one command "
            "from one index."
        ) from error
    return NetworkExtractor


def versions_of(options: Options) -> dict[str, str]:
    """Return the versions of Python and of the packages that make features."""
    versions = {"python": platform.python_version()}
    for name in OF_TEXTS if options.text else LIBRARIES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions
