"""Encoders with random weights, and what an extraction makes of texts by them."""

import numpy as np

from privfeat_extract.arguments import parse
from privfeat_extract.ranks import Rank
from tests.later import Later

sentence_transformers = Later("sentence_transformers")
torch, transformers = Later("torch"), Later("transformers")


def load(encoder, *argv):
    from privfeat_extract.text.encoder import EncoderExtractor

    base = ("--data", "r.csv", "--text", "a", "--target", "b", "--out", "o.h5")
    given = (*base, "--class-names", "x", "y", "--model", str(encoder), *argv)
    return EncoderExtractor(parse([*given, "--device", "cpu"]), Rank())


def features(extractor, texts):
    from privfeat_extract.text.source import TextRows

    rows = TextRows([(text,) for text in texts], np.zeros(len(texts), np.int64))
    batches = extractor.batches(rows, start=0, stop=len(rows))
    return np.vstack([batch.features for batch in batches])


def with_network(encoder, folder, network, options):
    """Return the folder of an encoder with random weights of another architecture."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(encoder)
    config = getattr(transformers, f"{network}Config")(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64 if network == "BigBird" else 32,
        initializer_range=0.5,
        pad_token_id=0,
        **options,
    )
    torch.manual_seed(0)
    getattr(transformers, f"{network}Model")(config).save_pretrained(folder / "hf")
    tokenizer.model_max_length = 64
    tokenizer.save_pretrained(folder / "hf")
    model = sentence_transformers.SentenceTransformer(str(folder / "hf"))
    model.save(str(folder / "made"))
    return folder / "made"
