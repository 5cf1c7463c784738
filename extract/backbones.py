"""A frozen timm network and the pixels it takes."""

import difflib
import logging
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import timm
import torch
from timm.data.config import resolve_model_data_config

from privfeat.data.networks import KNOWN_NETWORKS

from .errors import ExtractError, one_line
from .hub import quick_to_fail
from .weights import digest_of_file, digest_of_state, load_checkpoint


@dataclass(frozen=True)
class Backbone:
    """A network without classifier.

    Attributes
    ----------
    model : torch.nn.Module
        In evaluation mode; pooled features of shape (m, n_features).
    n_features : int
        Number of features.
    mean, std : tuple of float
        Of each channel, for pixels in [0, 1].
    interpolation : str
        What the weights were trained with.
    metadata : dict
        Model, weights and licence, for the feature file.
    """

    model: torch.nn.Module
    n_features: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    interpolation: str
    metadata: dict[str, Any]


def load_backbone(
    name: str,
    *,
    pretrained: bool,
    checkpoint: Path | None,
    model_kwargs: Mapping[str, Any],
    crop: int,
) -> Backbone:
    """Create a timm model and set its input size to ``crop``.

    Parameters
    ----------
    name : str
        Any name that ``timm.create_model`` takes.
    pretrained : bool
        Load the published weights; ignored if ``checkpoint`` is given. Without either,
        weights are random, from a fixed seed.
    checkpoint : Path or None
        Local weights.
    model_kwargs : mapping
        Passed to the model.
    crop : int
        Side of the input, in pixels. Position embeddings are resampled if the model
        has a fixed size and can change it.

    Raises
    ------
    ExtractError
        If the model is unknown, its weights cannot be had or do not fit, or it does
        not take images of this size.
    """
    published = pretrained and checkpoint is None
    plain, dot, tag = name.partition(".")
    known = KNOWN_NETWORKS.get(plain)
    model_kwargs = {**(known.model_kwargs if known else {}), **model_kwargs}
    if known and published and not known.published:
        raise ExtractError(
            f"--model {name} must have its weights from a file, since timm publishes "
            "none for it. Pass --checkpoint."
        )
    name_of_timm = known.timm + dot + tag if known else name
    model = _create(name_of_timm, published, model_kwargs)
    cfg = getattr(model, "pretrained_cfg", {})
    if checkpoint is not None:
        load_checkpoint(model, checkpoint, cfg.get("classifier"))
        digest, origin = digest_of_file(checkpoint), checkpoint.name
    else:
        digest = digest_of_state(model)
        origin = cfg.get("hf_hub_id") or cfg.get("url") or "published by timm"
        origin = origin if published else "random, seed 0"
    model.eval().requires_grad_(False)
    config = cast(Any, resolve_model_data_config)(model)
    n_features = _fit_to_size(model, name, crop, config["input_size"], model_kwargs)
    return Backbone(
        model=model,
        n_features=n_features,
        # Of published weights timm knows best; of a file, the name has to tell.
        **(
            {"mean": known.mean, "std": known.std, "interpolation": known.interpolation}
            if known and not published
            else {k: config[k] for k in ("mean", "std", "interpolation")}
        ),
        metadata={
            "model": cfg.get("architecture") or name,
            "model_name": name,
            "model_tag": (published and cfg.get("tag")) or "",
            "model_kwargs": dict(model_kwargs),
            "weights_sha256": digest,
            "weights_source": origin,
            "weights_license": (published and cfg.get("license")) or "unknown",
            "pooling": _pooling(model),
        },
    )


def _create(
    name: str, pretrained: bool, model_kwargs: Mapping[str, Any]
) -> torch.nn.Module:
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
    except (
        OSError,
        RuntimeError,
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        AssertionError,
    ) as error:
        cause = one_line(error)
        remedy = (
            "Check the network connection, or give local weights with --checkpoint."
            if pretrained or not answers
            else "Check --model and --model-kwargs."
        )
        raise ExtractError(
            f"--model {name} cannot be created: {cause} {remedy}"
        ) from error
    return model


def _fit_to_size(
    model: torch.nn.Module,
    name: str,
    crop: int,
    native: tuple[int, int, int],
    model_kwargs: Mapping[str, Any],
) -> int:
    """Set the input size and return the number of features that come out."""
    try:
        chosen = {"img_size", "dynamic_img_size"} & set(model_kwargs)
        if native[1:] != (crop, crop) and not chosen:
            if hasattr(model, "set_input_size"):
                cast(Any, model).set_input_size(img_size=(crop, crop))
        with torch.inference_mode():
            features = model(torch.zeros(2, native[0], crop, crop))
    except (RuntimeError, ValueError, TypeError, AssertionError) as error:
        cause = one_line(error).rstrip(".")
        raise ExtractError(
            f"--crop must be a size that {name} takes, got {crop} ({cause}). "
            f"Its own size is {native[1]}: pass --crop {native[1]}."
        ) from error
    if native[0] != 3 or features.ndim != 2:
        raise ExtractError(
            f"--model must take RGB images and return one row of features for each, "
            f"but {name} takes {native[0]} channels and returns shape "
            f"{tuple(features.shape)}."
        )
    return int(features.shape[1])


def _pooling(model: torch.nn.Module) -> str:
    """Name the pooling as timm does, for example ``token`` or ``avg``."""
    pooling = getattr(model, "global_pool", None)
    pooling = getattr(pooling, "pool_type", pooling)
    return pooling if isinstance(pooling, str) and pooling else "model default"
