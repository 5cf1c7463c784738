"""Networks that compute a text by what others hold run one text at a time."""

import numpy as np
import pytest

from tests.extract.text.encoders import features, load, with_network
from tests.later import Later

pytestmark = pytest.mark.slow  # the import alone takes ten seconds
torch = Later("torch")
sentence_transformers = Later("sentence_transformers")
EXPERTS = {
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 64,
    "num_key_value_heads": 2,
    "head_dim": 8,
}


def test_a_text_more_moves_no_other_in_a_network_with_experts(
    encoder, tmp_path, capsys
):
    """An expert multiplied the tokens of all, and rounded each by their number."""
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        folder = with_network(encoder, tmp_path, "Qwen3Moe", EXPERTS)
        extractor = load(folder, "--max-length", "16")
        draw = np.random.default_rng(0)
        words = "the film was bright and good dull bad long very".split()
        texts = [" ".join(draw.choice(words, draw.integers(3, 10))) for _ in range(20)]
        alone = features(extractor, texts[:12])
        beside = features(extractor, texts)[:12]
    finally:
        torch.set_num_threads(threads)
    assert extractor.batch_size == 1
    assert "it works on one" in capsys.readouterr().err
    np.testing.assert_array_equal(beside, alone)


def test_a_text_that_overflows_moves_no_other(encoder, tmp_path):
    """T5 in float16 bounded all texts of a batch where one had an infinite value."""
    sizes = {"d_kv": 8, "d_ff": 32, "feed_forward_proj": "relu"}
    folder = with_network(encoder, tmp_path, "T5", sizes)
    model = sentence_transformers.SentenceTransformer(str(folder))
    words = model.tokenizer.get_vocab()
    network = model[0].auto_model
    with torch.no_grad():
        for name, weight in network.named_parameters():
            weight.fill_(float("layer_norm" in name))
        embedding = network.shared.weight
        embedding[words["good"], 0], embedding[words["good"], 2] = 65_000.0, 10_000.0
        embedding[words["bad"], :2] = 65_000.0
        feed = network.encoder.block[0].layer[1].DenseReluDense
        feed.wi.weight[0, 1] = 1.0  # of "bad" alone
        feed.wo.weight[0, 0] = 1_000.0
    model.half().save(str(tmp_path / "half"))
    extractor = load(tmp_path / "half")
    beside = features(extractor, ["good", "bad"])[:1]
    np.testing.assert_array_equal(beside, features(extractor, ["good"]))
    assert {each.dtype for each in extractor._model.parameters()} == {torch.float32}


def test_networks_of_one_shape_keep_their_batches(encoder):
    assert load(encoder).batch_size == 31


def by_mask(rows):
    return torch.cat([rows[rows > 0] * 2.0, rows[rows <= 0]])


def by_places(rows):
    places = torch.nonzero(rows.sum(1) > 0)[:, 0]
    return rows[places] * 2.0


@pytest.mark.parametrize(
    "way",
    [
        by_mask,
        by_places,
        lambda rows: rows[:, rows[0] > 0],
        lambda rows: torch.where(rows > 0),
        lambda rows: rows[: int(rows.argmax().item())],
        lambda rows: (rows > 0).sum(1).tolist(),
        lambda rows: rows.clamp(max=rows.amax()),
        lambda rows: rows * torch.isinf(rows[:, None]).any(),
        lambda rows: rows / torch.linalg.vector_norm(x=rows),
    ],
)
def test_what_follows_from_values_of_all_is_seen(way):
    from privfeat_extract.text.experts import depends_on_others

    rows = torch.tensor([[1.0, -2.0], [-3.0, 1.0], [2.0, 2.0]])
    assert depends_on_others(torch.nn.Identity(), lambda: way(rows))


@pytest.mark.parametrize(
    "way",
    [
        lambda rows: torch.where(rows > 0, rows * 2.0, rows),
        lambda rows: rows[torch.arange(3)] @ rows.T,
        lambda rows: rows.masked_fill(rows > 0, 0.0).softmax(1),
        lambda rows: rows * (rows > 0).all(),  # as a mask of tokens
        lambda rows: rows * torch.nn.Parameter(rows).sum(),
        lambda rows: rows * torch.tensor([2.0]).sum(),
    ],
)
def test_other_operations_are_not(way):
    from privfeat_extract.text.experts import depends_on_others

    rows = torch.tensor([[1.0, -2.0], [-3.0, 1.0], [2.0, 2.0]])
    assert not depends_on_others(torch.nn.Identity(), lambda: way(rows))


def test_a_network_of_experts_is_known_by_its_parts():
    """Some give each expert room for so many tokens of all texts, in arrays."""
    from privfeat_extract.text.experts import depends_on_others

    network = torch.nn.ModuleDict({"router": torch.nn.Identity()})
    assert depends_on_others(network, lambda: None)
