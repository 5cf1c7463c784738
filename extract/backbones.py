"""A frozen timm network and the pixels it takes."""

import difflib
import logging
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, cast

import timm
import torch
from timm.data.config import resolve_model_data_config

from privfeat.data.networks import KNOWN_NETWORKS, KnownNetwork

from .arguments import Network
from .errors import OF_MODELS, ExtractError, one_line, say
from .hub import quick_to_fail
from .layers import Layers
from .weights import digest_of_file, digest_of_state, load_checkpoint


@dataclass(frozen=True)
class Backbone:
    """A network without classifier."""

    # in evaluation mode; from images to a tuple, for each layer an array of shape
    # (m, n_features of the layer)
    model: torch.nn.Module
    n_features: int  # of all layers
    interpolation: str  # what the weights were trained with
    metadata: dict[str, Any]  # of the feature file: weights, licence, scale of pixels


def load_backbone(network: Network, crop: int) -> Backbone:
    """Create a timm model and set its input size to ``crop``, in pixels.

    The name is any that ``timm.create_model`` takes, or of ``privfeat train``.
    Published weights are loaded unless a checkpoint is given; without either, weights
    are random, from a fixed seed. Position embeddings are resampled if the model has a
    fixed size and can change it.

    ExtractError if the model is unknown, its weights cannot be had or do not fit, it
    has no such layer, or it does not take images of this size.
    """
    name, checkpoint = network.model, network.checkpoint
    published = network.pretrained and checkpoint is None
    plain, dot, tag = name.partition(".")
    known = KNOWN_NETWORKS.get(plain)
    model_kwargs = {**(known.model_kwargs if known else {}), **network.model_kwargs}
    if known and published and not known.published:
        raise ExtractError(
            f"--model {name} must have its weights from a file, since timm publishes "
            "none for it. Pass --checkpoint."
        )
    name_of_timm = known.timm + dot + tag if known else name
    pooled = {} if network.pool is None else {"global_pool": network.pool}
    model = _create(name_of_timm, published, {**model_kwargs, **pooled})
    cfg = getattr(model, "pretrained_cfg", {})
    if checkpoint is not None:
        load_checkpoint(model, checkpoint, cfg.get("classifier"))
        if known and not (network.model_kwargs or network.mean or network.std):
            _warn_of_other_names(plain, known)
        digest, origin = digest_of_file(checkpoint), checkpoint.name
    else:
        digest = digest_of_state(model)
        origin = cfg.get("hf_hub_id") or cfg.get("url") or "published by timm"
        origin = origin if published else "random, seed 0"
    model.eval().requires_grad_(False)
    config = cast(Any, resolve_model_data_config)(model)
    # Of published weights timm knows best; of a file, the name has to tell.
    pixels = known._asdict() if known and not published else config
    parts = Layers(model, network.layers, network.pool or "avg")
    n_features = _fit_to_size(parts, name, crop, config["input_size"], model_kwargs)
    licence = network.weights_license or (published and cfg.get("license"))
    return Backbone(
        model=parts,
        n_features=n_features,
        interpolation=pixels["interpolation"],
        metadata={
            "model": cfg.get("architecture") or name,
            "model_name": name,
            "model_tag": (published and cfg.get("tag")) or "",
            "model_kwargs": dict(model_kwargs),
            "weights_sha256": digest,
            "weights_source": origin,
            "weights_license": licence or "unknown",
            "pooling": _pooling(model),
            "mean": _channels(network.mean, pixels["mean"]),
            "std": _channels(network.std, pixels["std"]),
            # Left out of one, so that files of earlier releases go on.
            **({"layers": parts.names} if parts.stages else {}),
        },
    )


def _warn_of_other_names(name: str, known: KnownNetwork) -> None:
    """Say which other names the same weights would fit, with worse features."""
    others = [n for n, one in KNOWN_NETWORKS.items() if one.timm == known.timm]
    others.remove(name)
    if others:
        say(
            f"warning: these weights fit {' and '.join([name, *others])}, but "
            "only one has the padding and the scale of the pixels that they were "
            "trained with; by the other name features are worse without an error. See "
            "where the weights come from, or try both on labelled public images."
        )


def _create(
    name: str, pretrained: bool, model_kwargs: Mapping[str, Any]
) -> torch.nn.Module:
    """Return the network of timm without a head; ExtractError if it cannot be made."""
    plain, _, tag = name.partition(".")
    if ":" not in name and not timm.is_model(plain):
        names = [*timm.list_models(), *KNOWN_NETWORKS]
        near = difflib.get_close_matches(plain, names, n=3)
        hint = f" Did you mean {', '.join(near)}?" if near else ""
        raise ExtractError(f"--model must be a model of timm, got {name!r}.{hint}")
    tags = [full.partition(".")[2] for full in timm.list_pretrained(f"{plain}.*")]
    if ":" not in name and tag and tag not in tags:
        known = f"There are {', '.join(tags)}." if tags else "It has none."
        raise ExtractError(
            f"--model {plain} must have a tag of timm's, got {tag!r}. {known}"
        )
    torch.manual_seed(0)
    # Each retry of a download would add two lines before the error that counts.
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    answers = True
    fetches = quick_to_fail() if pretrained or ":" in name else nullcontext(answers)
    try:
        with fetches as answers:
            model: torch.nn.Module = timm.create_model(
                name, pretrained=pretrained, num_classes=0, **model_kwargs
            )
    except (*OF_MODELS, AssertionError) as error:
        cause = one_line(error)
        remedy = (
            "Check the network connection, or give local weights with --checkpoint."
            if pretrained or not answers
            else "Check --model, --model-kwargs and --pool."
        )
        raise ExtractError(
            f"--model {name} cannot be created: {cause} {remedy}"
        ) from error
    return model


def _fit_to_size(
    parts: Layers,
    name: str,
    crop: int,
    native: tuple[int, int, int],
    model_kwargs: Mapping[str, Any],
) -> int:
    """Set the input size and return the number of features that come out."""
    try:
        chosen = {"img_size", "dynamic_img_size"} & set(model_kwargs)
        if native[1:] != (crop, crop) and not chosen:
            if hasattr(parts.model, "set_input_size"):
                cast(Any, parts.model).set_input_size(img_size=(crop, crop))
        with torch.inference_mode():
            features = parts(torch.zeros(2, native[0], crop, crop))
    except (RuntimeError, ValueError, TypeError, AssertionError) as error:
        cause = one_line(error).rstrip(".")
        raise ExtractError(
            f"--crop must be a size that {name} takes, got {crop} ({cause}). "
            f"Its own size is {native[1]}: pass --crop {native[1]}."
        ) from error
    wrong = next((part for part in features if part.ndim != 2), None)
    if native[0] != 3 or wrong is not None:
        shape = tuple(features[0].shape if wrong is None else wrong.shape)
        raise ExtractError(
            f"--model must take RGB images and return one row of features for each, "
            f"but {name} takes {native[0]} channels and returns shape {shape}."
        )
    return sum(int(part.shape[1]) for part in features)


def _channels(given: list[float] | None, own: Sequence[float]) -> list[float]:
    values = list(own) if given is None else given
    return values * 3 if len(values) == 1 else values


def _pooling(model: torch.nn.Module) -> str:
    """Name the pooling as timm does, for example ``token`` or ``avg``."""
    pooling = getattr(model, "global_pool", None)
    pooling = getattr(pooling, "pool_type", pooling)
    return pooling if isinstance(pooling, str) and pooling else "model default"
