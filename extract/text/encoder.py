"""Features of texts by a frozen sentence encoder."""

from contextlib import nullcontext
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from transformers.utils import logging

from ..arguments import Options
from ..devices import find_device, find_precision, kind_of
from ..errors import OF_MODELS, ExtractError, one_line, say
from ..ranks import Rank
from ..slots import find_batch_size
from .batches import Rows, TextExtractor, of_pairs, width
from .checkpoints import digest_of_folder, find_checkpoint, license_of, only_safe_files
from .experts import depends_on_others

SHORTEST = 16  # tokens that a text is filled up to, or to a power of two of this
_BATCHES = 32  # whose texts are sorted by their lengths at once
_MIXED = 0.01  # of the largest feature; rounding changes much less


class EncoderExtractor(TextExtractor):
    """Runs texts through a model of sentence-transformers.

    ``model_kwargs`` may set ``prompt``, which is put before each text (default: that of
    the model). ExtractError if the model cannot be had or loaded, or an argument does
    not fit it.

    **One text, one row.** A text is filled up to a length that follows from its own
    number of tokens, and runs in a batch of texts of that length, of a fixed number of
    rows, one of them empty. So which texts are beside it changes neither the shape of
    any array, nor whether some tokens are hidden, nor, in what the model does, its row:
    fillers have no attention. Where shapes within the network follow from values, as of
    the tokens that an expert gets, or one number is made of all texts, a text runs
    alone (`experts`). Weights become float32, as in shorter types some networks (T5,
    BART) bound all texts of a batch by whether one of them overflows. Each batch gets a
    copy of the model as it was loaded, with the same weights: some remember the longest
    text that they saw (rotary positions of kind "dynamic"), or that one was too short
    for sparse attention (BigBird), and treat all later ones otherwise. ExtractError for
    a model that gives a text another row beside other texts.

    **A text is a text.** ExtractError for an encoder that takes images, sounds or chats
    as well: sentence-transformers fetches what a text is the address of then.

    **No code of others.** Of a folder only configurations, vocabularies and safetensors
    are read (`checkpoints`), and a model that brings its own code is refused.
    """

    def __init__(self, options: Options, rank: Rank) -> None:
        (network,) = options.networks
        unknown = sorted(set(network.model_kwargs) - {"prompt"})
        if unknown:
            raise ExtractError(
                f"--model-kwargs of texts must be prompt, got {unknown[0]!r}."
            )
        self.device = find_device(options.device, rank.local)
        self.precision = find_precision(options.precision, self.device)
        self.batch_size = options.batch_size or (
            256 if self.device.type == "cuda" else 32
        )
        self.n_at_once = self.batch_size * _BATCHES
        folder = find_checkpoint(network.model)
        self._model = _load(folder).to(self.device, torch.float32).eval()
        own = self._model.prompts.get(self._model.default_prompt_name or "", "")
        self._prompt = str(network.model_kwargs.get("prompt", own))
        self.max_length = _length(self._model, options.max_length)
        self._width = self._columns()
        ends = SHORTEST, self.max_length  # some choose their way by the length
        if depends_on_others(
            self._model, lambda: [self._encode(["it"], length) for length in ends]
        ):
            say(
                "this network computes texts of a batch together, by what they hold, "
                "and would round each by the others: it works on one."
            )
            self.batch_size = 1
        n_rows = max(find_batch_size(self._tried, self.batch_size), 2)
        self.batch_size = n_rows - 1  # beside the empty text
        self.n_features = width(self._width, options.text)
        local = folder == Path(network.model)
        name = folder.resolve().name if local else network.model
        self.metadata = {
            "model": _architecture(self._model),
            "model_name": name,
            # of the hub, the revision
            "model_tag": "" if local else folder.name,
            "model_kwargs": {"prompt": self._prompt} if self._prompt else {},
            "weights_sha256": digest_of_folder(folder),
            "weights_source": name,
            "weights_license": network.weights_license
            or license_of(folder)
            or "unknown",
            "pooling": _pooling(self._model),
            "max_length": self.max_length,
            "precision": self.precision,
            **of_pairs(options.text),
        }
        self.arguments = {**self.metadata, "text": list(options.text)}
        self.device_kind = [*kind_of(self.device), str(self.batch_size)]

    def _features(self, texts: list[str]) -> Rows:
        """Return a row for each text, in their order."""
        rows = np.empty((len(texts), self._width), np.float32)
        lengths = self._lengths(texts)
        for length in np.unique(lengths).tolist():
            places = np.flatnonzero(lengths == length)
            for first in range(0, len(places), self.batch_size):
                some = places[first : first + self.batch_size]
                rows[some] = self._encode([texts[i] for i in some], length)
        return rows

    def _lengths(self, texts: list[str]) -> Any:
        """Return what each text is filled up to, in tokens; the end is cut off."""
        found = self._model.tokenizer(
            [self._prompt + text for text in texts],
            truncation=True,
            max_length=self.max_length,
            return_attention_mask=False,
        )
        tokens = np.array([len(ids) for ids in found["input_ids"]])
        doubled = np.ceil(np.log2(np.maximum(tokens, SHORTEST) / SHORTEST))
        return np.minimum(SHORTEST * 2 ** doubled.astype(int), self.max_length)

    def _tried(self, order: NDArray[np.intp]) -> NDArray[np.float32]:
        """Return the features of made-up texts, as `find_batch_size` asks.

        Most have one length, so that `encode`, which sorts them, moves none of these.
        """
        lengths = [SHORTEST]  # all that a text is filled up to
        while lengths[-1] < self.max_length:
            lengths.append(2 * lengths[-1])
        lengths[-1] = self.max_length
        pieces = {piece.strip("▁Ġ#") for piece in self._model.tokenizer.get_vocab()}
        words = sorted(filter(str.isalpha, pieces)) or ["it"]  # and no special tokens
        n, rows = len(order), []
        for length in lengths:
            n_words = [length if i < n else i % 2 * (length // 3) for i in order]
            texts = [
                _made_up(words, *each) for each in zip(order, n_words, strict=True)
            ]
            rows.append(self._encode(texts, length, n))
        return np.hstack(rows)

    @torch.inference_mode()
    def _encode(self, texts: list[str], length: int, n_rows: int = 0) -> Rows:
        """Return the features of texts that have this length when filled up."""
        n_rows = n_rows or self.batch_size + 1
        filler = [""] * (n_rows - len(texts))
        at_length = {"padding": "max_length", "max_length": length, "truncation": True}
        narrow = self.precision != "float32"
        with (
            torch.autocast(self.device.type, getattr(torch, self.precision))
            if narrow
            else nullcontext()
        ):
            rows = _as_loaded(self._model).encode(
                [*texts, *filler],
                prompt=self._prompt,
                batch_size=n_rows,  # all in one call
                show_progress_bar=False,
                convert_to_tensor=True,
                processing_kwargs={"text": at_length},
            )
        return np.asarray(rows[: len(texts)].float().cpu())

    def _columns(self) -> int:
        """Return the number of features, after a text of the full length."""
        try:
            row = self._encode(["privfeat"], self.max_length)
        except (RuntimeError, ValueError, TypeError, IndexError) as error:
            raise ExtractError(
                f"--max-length must be one that the model takes, got {self.max_length} "
                f"({one_line(error, 120).rstrip('.')}). Pass a smaller one."
            ) from error
        beside = ["it", "is", "beside others"]
        other = self._encode([*beside, "privfeat"][-self.batch_size :], self.max_length)
        if not np.allclose(row[0], other[-1], rtol=0, atol=_MIXED * np.abs(row).max()):
            raise ExtractError(
                "--model must give a text a row that does not depend on the texts "
                "beside it, but this one mixes the texts of a batch. Pass another."
            )
        return int(row.shape[1])


def _made_up(words: list[str], number: int, n_words: int) -> str:
    """Return a text of so many words, by its number, of one length in letters."""
    draw, width = np.random.default_rng(number), 8 * n_words
    text = " ".join(words[i] for i in draw.integers(len(words), size=n_words))
    return text[:width].ljust(width)


def _load(folder: Path) -> SentenceTransformer:
    """Return the model in a folder, of which no code runs."""
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with only_safe_files(folder) as files:
            model = SentenceTransformer(
                str(files),
                device="cpu",
                trust_remote_code=False,
                local_files_only=True,
                model_kwargs={"use_safetensors": True},
            )
    except (*OF_MODELS, ImportError) as error:
        raise ExtractError(
            f"--model must be the folder of a sentence encoder, with a configuration "
            f"and a vocabulary that sentence-transformers knows, but {folder.name} "
            f"cannot be loaded: {one_line(error, 160)}"
        ) from error
    if not callable(getattr(model, "tokenizer", None)):
        raise ExtractError(
            f"--model must cut texts into tokens by a tokenizer of transformers, but "
            f"{folder.name} does not."
        )
    if set(model.modalities) != {"text"}:
        raise ExtractError(
            "--model must be an encoder of nothing but texts, without a chat template: "
            f"in {folder.name} a text that is an address or the name of a file may be "
            "fetched, as an image, and a template takes the room of the end of a text."
        )
    if hasattr(model[0], "unpad_inputs"):  # texts as one row, by the tokens of all
        model[0].unpad_inputs = False
    return model


def _as_loaded(model: SentenceTransformer) -> SentenceTransformer:
    """Return a copy that shares weights and tokenizer; what it remembers is its own."""
    shared = [*model.parameters(), model.tokenizer]
    return deepcopy(model, {id(each): each for each in shared})


def _length(model: SentenceTransformer, asked: int | None) -> int:
    """Return the number of tokens that texts are cut to."""
    own = model.max_seq_length
    if asked is None and own is None:
        raise ExtractError("--max-length must be given for a model that has none.")
    model.max_seq_length = length = int(own if asked is None else asked)
    return length


def _architecture(model: SentenceTransformer) -> str:
    """Name the network below the pooling, for example ``BertModel``."""
    first = model[0]
    return type(getattr(first, "auto_model", first)).__name__


def _pooling(model: SentenceTransformer) -> str:
    """Name how tokens become one row, for example ``mean``."""
    for module in model:
        if hasattr(module, "get_pooling_mode_str"):
            return str(module.get_pooling_mode_str())
        if hasattr(module, "pooling_mode"):
            mode = module.pooling_mode
            return mode if isinstance(mode, str) else "+".join(mode)
    return "model default"
