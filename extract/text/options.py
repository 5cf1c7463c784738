"""The arguments for texts, and which of the others go with them."""

import argparse
from collections.abc import Mapping
from typing import Any

from ..values import count, plain

NGRAMS = "ngrams"
# What the others change is done to pixels alone.
OF_TEXTS = ("text", "target", "users", "class_names", "max_length")
NOT_OF_TEXTS = tuple(
    "groups data_dir views resize crop interpolation workers channels_last "
    "compile".split()
)
NOT_OF_ENCODERS = ("checkpoint", "pretrained", "pool", "layers", "mean", "std")
_SWITCHES = {"pretrained": "--no-pretrained", "channels_last": "--no-channels-last"}


def add_text(parser: argparse.ArgumentParser) -> None:
    """Add the group of arguments for texts."""
    add = parser.add_argument_group(
        "texts",
        "--data is a table (.csv, .parquet, .arrow, .npz), or a folder with tables "
        "train.csv and test.csv; --model a sentence encoder, by its folder or its name "
        f"on the hub, or '{NGRAMS}' (no weights).",
    ).add_argument
    columns = "the column of the texts; two of them for pairs"
    many = {"nargs": "+", "type": plain, "default": ()}
    add("--text", metavar="COLUMN", help=columns, **many)
    classes = "the column of the classes; without it rows can only be predicted"
    add("--target", metavar="COLUMN", help=classes)
    names = (
        "all classes, which everyone may know, or a file of them (.toml, .json, .csv: "
        "a label and a description each); features of the names become the split "
        "'classes', for `privfeat fit --prior`"
    )
    add("--class-names", metavar="NAME", help=names, **many)
    add("--users", metavar="COLUMN", help="whose row is whose: protects users")
    longest = "longer texts are cut (default: the encoder's)"
    add("--max-length", type=count, metavar="TOKENS", help=longest)


def check_text(
    values: Mapping[str, Any], defaults: Mapping[str, Any], parser: Any
) -> None:
    """Exit with status 2 if arguments for texts and others do not fit each other."""
    networks = values["networks"]
    if not values["text"]:
        for name in OF_TEXTS[1:]:
            if values[name]:
                parser.error(f"{_option(name)} must go with --text.")
        if NGRAMS in {network.model for network in networks}:
            parser.error(f"--model {NGRAMS} must go with --text, a column of texts.")
        return
    if len(values["text"]) > 2 or len(set(values["text"])) < len(values["text"]):
        parser.error("--text must be one column, or two different ones for pairs.")
    if (values["target"] is None) != (not values["class_names"]):
        parser.error(
            "--target and --class-names must be given together: classes are what is "
            "known to be possible, not what the rows have."
        )
    if len(networks) > 1:
        parser.error("--text must go with one --model.")
    (network,) = networks
    wrong = [name for name in NOT_OF_TEXTS if values[name] != defaults[name]]
    wrong += [
        name for name in NOT_OF_ENCODERS if getattr(network, name) != defaults[name]
    ]
    if wrong:
        instead = " Pass --users." if wrong[0] == "groups" else ""
        instead = (
            " Pass its folder as --model." if wrong[0] == "checkpoint" else instead
        )
        parser.error(f"{_option(wrong[0])} must not go with --text.{instead}")
    if network.model == NGRAMS and values["max_length"] is not None:
        parser.error(
            f"--max-length must not go with --model {NGRAMS}, which cuts none."
        )


def _option(name: str) -> str:
    return _SWITCHES.get(name, f"--{name.replace('_', '-')}")
