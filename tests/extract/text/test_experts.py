"""Networks that multiply tokens of several texts together run one text at a time."""

import numpy as np
import pytest

from tests.extract.text.encoders import features, load, with_network
from tests.later import Later

pytestmark = pytest.mark.slow  # the import alone takes ten seconds
torch = Later("torch")
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
    ],
)
def test_shapes_that_follow_from_values_are_seen(way):
    from privfeat_extract.text.experts import depends_on_others

    rows = torch.tensor([[1.0, -2.0], [-3.0, 1.0], [2.0, 2.0]])
    assert depends_on_others(torch.nn.Identity(), lambda: way(rows))


@pytest.mark.parametrize(
    "way",
    [
        lambda rows: torch.where(rows > 0, rows * 2.0, rows),
        lambda rows: rows[torch.arange(3)] @ rows.T,
        lambda rows: rows.masked_fill(rows > 0, 0.0).softmax(1),
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
