"""The arguments of the command, checked."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .transforms import INTERPOLATIONS

EPILOG = """examples:
  privfeat-extract --data digits --model scattering --out digits.h5
  privfeat-extract --data photos/ --model vit_base_patch16_224.augreg_in21k \\
      --out photos.h5
  privfeat-extract --data hfds/uoft-cs/cifar10 --model resnet50 --out cifar10.h5
  torchrun --nproc-per-node 8 -m privfeat_extract --data photos/ \\
      --model resnet50 --out photos.h5

`privfeat-extract overlap A.h5 B.h5` finds near-duplicates between two feature files.

An interrupted extraction continues when the same command is run again. Under torchrun
each process takes its share of the images and, by default, its own GPU.
"""


@dataclass(frozen=True)
class Options:
    """What the user asked for. Each attribute is the argument of the same name."""

    data: str
    out: Path
    model: str
    data_dir: Path | None = None
    splits: list[str] | None = None
    limit: int | None = None
    groups: Path | None = None
    checkpoint: Path | None = None
    model_kwargs: dict[str, Any] = field(default_factory=dict)
    pretrained: bool = True
    weights_license: str | None = None
    resize: int | None = None
    crop: int | None = None
    interpolation: str | None = None
    mean: list[float] | None = None
    std: list[float] | None = None
    batch_size: int | None = None
    workers: int | None = None
    device: str = "auto"
    precision: str = "auto"
    channels_last: bool = True
    compile: bool = False
    dtype: str = "float16"
    skip_bad: bool = False
    resume: bool = False
    overwrite: bool = False
    quiet: bool = False

    def sizes(self, resize: int, crop: int) -> tuple[int, int]:
        """Return the lengths to resize and crop to, given the defaults of a model.

        If one alone is given, the other keeps the proportion of the defaults, and the
        crop is no larger than the resized image.
        """
        if self.resize is not None and self.crop is not None:
            return self.resize, self.crop
        if self.crop is not None:
            return max(self.crop, round(self.crop * resize / crop)), self.crop
        if self.resize is not None:
            return self.resize, min(self.resize, crop)
        return resize, crop


def parse(argv: Sequence[str] | None = None) -> Options:
    """Read the command line; exits with status 2 if it is wrong."""
    parser = _parser()
    values = vars(parser.parse_args(argv))
    values["model_kwargs"] = dict(values["model_kwargs"])
    options = Options(**values)
    if options.resize and options.crop and options.crop > options.resize:
        parser.error(
            f"--crop must be at most --resize ({options.resize}), got {options.crop}."
        )
    for name in ("mean", "std"):
        if len(values[name] or [0]) not in (1, 3):
            parser.error(f"--{name} must be 1 or 3 numbers, got {values[name]}.")
    if any(not value > 0 for value in options.std or ()):
        parser.error(f"--std must be > 0, got {options.std}.")
    if len(set(options.splits or ())) != len(options.splits or ()):
        parser.error(f"--splits must be different, got {options.splits}.")
    if options.model == "scattering":
        for name in ("checkpoint", "mean", "std"):
            if values[name] is not None:
                parser.error(f"--model scattering does not take --{name}.")
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="privfeat-extract",
        description="Turn images into a feature file for privfeat.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    data = parser.add_argument_group("data")
    data.add_argument(
        "--data",
        required=True,
        type=_plain,
        help="image folder ([split/]class/file), tar or zip archive of one, 'digits', "
        "or a data set of timm: torch/cifar10, hfds/..., tfds/..., wds/...",
    )
    data.add_argument(
        "--data-dir",
        type=path_argument,
        help="where data sets are, or are downloaded to",
    )
    data.add_argument("--splits", nargs="+", help="default: those that are there")
    data.add_argument("--limit", type=_count, help="take the first N of each split")
    data.add_argument(
        "--groups",
        type=path_argument,
        metavar="FILE.csv",
        help="whose image is whose: columns file, a path below DATA, and user; for "
        "`privfeat fit --groups`",
    )
    data.add_argument(
        "--skip-bad",
        action="store_true",
        help="list images that cannot be decoded and go on, instead of stopping",
    )
    model = parser.add_argument_group("model")
    model.add_argument(
        "--model",
        required=True,
        help="a model of timm or of `privfeat train`, or 'scattering' (no weights)",
    )
    model.add_argument(
        "--checkpoint", type=path_argument, help="local .safetensors or .pth"
    )
    model.add_argument(
        "--model-kwargs", nargs="+", type=_pair, default=[], metavar="KEY=VALUE"
    )
    model.add_argument(
        "--no-pretrained",
        dest="pretrained",
        action="store_false",
        help="random weights from a fixed seed",
    )
    model.add_argument("--weights-license", help="recorded in the feature file")
    pixels = parser.add_argument_group("pixels")
    pixels.add_argument(
        "--resize",
        type=_count,
        help="shorter side (default 384; 16 or 32 for scattering)",
    )
    pixels.add_argument(
        "--crop",
        type=_count,
        help="centre square (default 256; 16 or 32 for scattering)",
    )
    pixels.add_argument("--interpolation", choices=INTERPOLATIONS)
    pixels.add_argument("--mean", nargs="+", type=_number, help="default: the model's")
    pixels.add_argument("--std", nargs="+", type=_number, help="default: the model's")
    speed = parser.add_argument_group("speed")
    speed.add_argument("--batch-size", type=_count)
    speed.add_argument(
        "--workers",
        type=count_or_zero,
        help="processes that decode images; 0: none beside this one",
    )
    speed.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    speed.add_argument(
        "--precision",
        default="auto",
        choices=("auto", "float32", "bfloat16", "float16"),
        help="of the network; auto: bfloat16 on a GPU that has it, float32 on a CPU",
    )
    speed.add_argument(
        "--channels-last", action=argparse.BooleanOptionalAction, default=True
    )
    speed.add_argument(
        "--compile", action="store_true", help="torch.compile; needs a C++ compiler"
    )
    out = parser.add_argument_group("output")
    out.add_argument(
        "--out", type=path_argument, required=True, help="the .h5 file to write"
    )
    out.add_argument("--dtype", default="float16", choices=("float16", "float32"))
    again = out.add_mutually_exclusive_group()
    again.add_argument(
        "--resume",
        action="store_true",
        help="also succeed, without work, if OUT is complete from these arguments",
    )
    again.add_argument(
        "--overwrite", action="store_true", help="discard OUT and any unfinished run"
    )
    out.add_argument("--quiet", action="store_true", help="no progress bar")
    return parser


def _pair(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"must be KEY=VALUE, got {text!r}")
    lowered = value.lower()
    if lowered in ("true", "false", "none"):
        return name, {"true": True, "false": False, "none": None}[lowered]
    for convert in (int, float):
        try:
            return name, convert(value)
        except ValueError:
            continue
    return name, value


def path_argument(text: str) -> Path:
    """Return a path that the system can take."""
    if not text:
        raise argparse.ArgumentTypeError("must be a path, got ''")
    return Path(_plain(text))


def _plain(text: str) -> str:
    if "\0" in text:
        raise argparse.ArgumentTypeError(f"must hold no null character, got {text!r}")
    return text


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text) > 0:
        raise argparse.ArgumentTypeError(f"must be a whole number > 0, got {text!r}")
    return int(text)


def count_or_zero(text: str) -> int:
    """Return a whole number of at least zero."""
    return 0 if text == "0" else _count(text)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"must be a number, got {text!r}") from error
    if not abs(value) < 1e6:
        raise argparse.ArgumentTypeError(f"must be finite, got {text!r}")
    return value
