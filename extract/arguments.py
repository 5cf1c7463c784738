"""The arguments of the command, checked."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from .text.options import add_text, check_text
from .transforms import INTERPOLATIONS
from .values import (
    OUTPUT,
    count,
    count_or_zero,
    layer,
    number,
    pair,
    path_argument,
    plain,
)
from .views import VIEWS

SCATTERING = "scattering"

EPILOG = """examples:
  privfeat-extract --data digits --model scattering --out digits.h5
  privfeat-extract --data photos/ --model vit_base_patch16_224.augreg_in21k \\
      --out photos.h5
  privfeat-extract --data hfds/uoft-cs/cifar10 --model resnet50 --out cifar10.h5
  privfeat-extract --data reviews.csv --text review --target verdict \\
      --class-names good bad --model ngrams --out reviews.h5
  torchrun --nproc-per-node 8 -m privfeat_extract --data photos/ \\
      --model resnet50 --out photos.h5

`privfeat-extract overlap A.h5 B.h5` finds near-duplicates between two feature files.

An interrupted extraction continues when the same command is run again. Under torchrun
each process takes its share of the rows and, by default, its own GPU.
"""


@dataclass(frozen=True)
class Network:
    """One ``--model``, and the options that belong to it alone."""

    model: str
    checkpoint: Path | None = None
    model_kwargs: dict[str, Any] = field(default_factory=dict)
    pretrained: bool = True
    weights_license: str | None = None
    pool: str | None = None
    layers: tuple[int | str, ...] = (OUTPUT,)
    mean: list[float] | None = None
    std: list[float] | None = None


@dataclass(frozen=True)
class Options:
    """What the user asked for. Each attribute is the argument of the same name."""

    data: str
    out: Path
    networks: tuple[Network, ...]
    data_dir: Path | None = None
    splits: list[str] | None = None
    limit: int | None = None
    groups: Path | None = None
    text: tuple[str, ...] = ()
    target: str | None = None
    class_names: tuple[str, ...] = ()
    users: str | None = None
    max_length: int | None = None
    views: int = 1
    resize: int | None = None
    crop: int | None = None
    interpolation: str | None = None
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


_SHELLS = ("bash", "zsh", "tcsh", "fish")  # as of privfeat
_PLAIN = Options("", Path(), (Network(""),))


class _OfModel(argparse.Action):
    """An option of the ``--model`` before it; of all that follow if there is none."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        if self.dest == "model":
            namespace.networks.append({**namespace.common, "model": values})
        else:
            found = namespace.networks[-1] if namespace.networks else namespace.common
            found[self.dest] = values if self.nargs != 0 else self.const


class _Completion(argparse.Action):
    """Print what lets a shell complete options, and exit: the others may be missing."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        from .completion import completion

        sys.stdout.write(completion(parser, values) + "\n")
        parser.exit()


def parse(argv: Sequence[str] | None = None) -> Options:
    """Read the command line; exits with status 2 if it is wrong."""
    parser = extract_parser()
    values = vars(parser.parse_args(argv))
    del values["common"]
    for given in values["networks"]:
        given["model_kwargs"] = dict(given.get("model_kwargs", ()))
        given["layers"] = tuple(given.get("layers", (OUTPUT,)))
    networks = tuple(Network(**given) for given in values.pop("networks"))
    values |= {name: tuple(values[name]) for name in ("text", "class_names")}
    options = Options(**values, networks=networks)
    check_text(vars(options), {**vars(_PLAIN), **vars(_PLAIN.networks[0])}, parser)
    if options.resize and options.crop and options.crop > options.resize:
        parser.error(
            f"--crop must be at most --resize ({options.resize}), got {options.crop}."
        )
    if len(set(options.splits or ())) != len(options.splits or ()):
        parser.error(f"--splits must be different, got {options.splits}.")
    for network in networks:
        _check(network, parser)
    if SCATTERING in {network.model for network in networks}:
        if len(networks) > 1:
            parser.error("--model scattering must be the only --model.")
        if options.views > 1:
            parser.error("--model scattering does not take --views. Take a network.")
    return options


def _check(network: Network, parser: argparse.ArgumentParser) -> None:
    """Exit if the options of one network do not fit each other."""
    for name, given in (("mean", network.mean), ("std", network.std)):
        if len(given or [0]) not in (1, 3):
            parser.error(f"--{name} must be 1 or 3 numbers, got {given}.")
    if any(not value > 0 for value in network.std or ()):
        parser.error(f"--std must be > 0, got {network.std}.")
    if len(set(network.layers)) != len(network.layers):
        parser.error(f"--layers must be different, got {list(network.layers)}.")
    if network.pool is not None and "global_pool" in network.model_kwargs:
        parser.error("--pool and --model-kwargs global_pool must not both be given.")
    for name in ("checkpoint", "mean", "std", "pool"):
        if network.model == SCATTERING and getattr(network, name) is not None:
            parser.error(f"--model scattering does not take --{name}.")
    if network.model == SCATTERING and network.layers != (OUTPUT,):
        parser.error("--model scattering does not take --layers.")


def extract_parser() -> argparse.ArgumentParser:
    """Return the parser of ``privfeat-extract``, without ``overlap``."""
    parser = argparse.ArgumentParser(
        prog="privfeat-extract",
        description="Turn images or texts into a feature file for privfeat.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument_group("data").add_argument
    data = (
        "image folder ([split/]class/file), tar or zip archive of one, 'digits', a "
        "data set of timm (torch/cifar10, hfds/...), or a table"
    )
    add("--data", required=True, type=plain, help=data)
    where = "where data sets are, or are downloaded to"
    add("--data-dir", type=path_argument, help=where)
    add(
        "--splits",
        nargs="+",
        help="default: those that are there of train, training, val, valid, "
        "validation, eval, evaluation, test, testing; another folder only by its name",
    )
    few = "take the first N of each split, for trials: no ledger pays for fits of them"
    add("--limit", type=count, help=few)
    whose = (
        "whose image is whose: columns file, a path below DATA, and user; for "
        "`privfeat fit --groups`"
    )
    add("--groups", type=path_argument, metavar="FILE.csv", help=whose)
    skip = "list images that cannot be decoded, or texts that are missing, and go on"
    add("--skip-bad", action="store_true", help=skip)
    _add_of_model(parser)
    add_text(parser)
    add = parser.add_argument_group("pixels").add_argument
    side = "shorter side (default 384; 16 or 32 for scattering)"
    add("--resize", type=count, help=side)
    square = "centre square (default 256; 16 or 32 for scattering)"
    add("--crop", type=count, help=square)
    add("--interpolation", choices=INTERPOLATIONS)
    views = (
        "take the mean of the features over the first N of these, in N times the time: "
        f"{', '.join(map(str, VIEWS))} (default 1)"
    )
    numbers = range(1, len(VIEWS) + 1)
    add("--views", type=int, default=1, choices=numbers, metavar="N", help=views)
    add = parser.add_argument_group("speed").add_argument
    at_once = "that a network works on, lowered to a power of two that treats all alike"
    add("--batch-size", type=count, help=f"images or texts {at_once}")
    workers = "processes that decode images; 0: none beside this one"
    add("--workers", type=count_or_zero, help=workers)
    add("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    types = ("auto", "float32", "bfloat16", "float16")
    which = "of the network; auto: bfloat16 on a GPU that has it, float32 on a CPU"
    add("--precision", default="auto", choices=types, help=which)
    add("--channels-last", action=argparse.BooleanOptionalAction, default=True)
    compiled = "torch.compile; needs a C++ compiler"
    add("--compile", action="store_true", help=compiled)
    out = parser.add_argument_group("output")
    add = out.add_argument
    add("--out", type=path_argument, required=True, help="the .h5 file to write")
    add("--dtype", default="float16", choices=("float16", "float32"))
    again = out.add_mutually_exclusive_group().add_argument
    resume = "also succeed, without work, if OUT is complete from these arguments"
    again("--resume", action="store_true", help=resume)
    over = "discard OUT and any unfinished run"
    again("--overwrite", action="store_true", help=over)
    add("--quiet", action="store_true", help="no progress bar")
    about = "print what lets a shell (%(choices)s) complete options"
    add = partial(parser.add_argument, action=_Completion, default=argparse.SUPPRESS)
    add("--completion", choices=_SHELLS, help=about)
    return parser


def _add_of_model(parser: argparse.ArgumentParser) -> None:
    """Add the options of a model, which stand behind their ``--model``."""
    group = parser.add_argument_group(
        "model",
        "Several --model stand side by side: their features follow one another, each "
        "part scaled to norm one. The others here are of the --model before them, or "
        "of all if they stand before the first.",
    )
    parser.set_defaults(networks=[], common={})
    add = partial(group.add_argument, action=_OfModel, default=argparse.SUPPRESS)
    model = "a name of timm or of `privfeat train`, or 'scattering' (no weights)"
    add("--model", required=True, help=model)
    add("--checkpoint", type=path_argument, help="local .safetensors or .pth")
    add("--model-kwargs", nargs="+", type=pair, metavar="KEY=VALUE")
    fresh = "random weights from a fixed seed"
    add("--no-pretrained", dest="pretrained", nargs=0, const=False, help=fresh)
    add("--weights-license", help="recorded in the feature file")
    add("--pool", help="avg, max, avgmax, catavgmax or what else the model knows")
    add(
        "--layers",
        nargs="+",
        type=layer,
        help=f"numbers of stages from 0, and '{OUTPUT}' (default), what the network "
        "itself gives; several follow one another, each part scaled to norm one",
    )
    add("--mean", nargs="+", type=number, help="default: the model's")
    add("--std", nargs="+", type=number, help="default: the model's")
