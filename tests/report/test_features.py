import pytest

from privfeat.report.features import features_in_words, is_of_texts

MADE = {"pooling": "none"}
ENCODER = {"model": "BertModel", "model_name": "mini", "max_length": 128} | MADE


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        (None, "does not know how they were made"),
        ({"dataset": "x"}, "does not know how they were made"),
        ({"model": "vit"}, "does not know how they were made"),
        ({"model": "vit"}, "Their author says that they are of vit."),
        (ENCODER, "The records are texts. A fixed network, mini, made"),
        (ENCODER, "Texts longer than 128 tokens were cut"),
        ({"model": "ngrams"} | MADE, "without a vocabulary, each by itself"),
        (
            {"model": "scattering"} | MADE,
            "The records are images. A transform",
        ),
        ({"model": "vit", "crop": 224} | MADE, "A fixed network, vit, made"),
    ],
)
def test_features_in_words_says_how_they_were_made(origin, words):
    found = features_in_words(origin)
    assert words in found
    weights = "What the weights of this network were trained on is not covered"
    assert (weights in found) == ("network," in found)


def test_features_of_tables_and_networks_are_the_records():
    assert "publicly declared" in features_in_words(None, table=True)
    assert "from the input on" in features_in_words(None, network=True)
    tuned = features_in_words(None, network=True, frozen=True, weights=True)
    assert "from the input on" not in tuned
    assert "kept the values that they started with" in tuned
    assert "weights of another training" in tuned


def test_texts_are_known_by_their_extractors():
    assert is_of_texts(ENCODER)
    assert is_of_texts({"model": "ngrams"})
    assert not is_of_texts({"model": "vit", "crop": 224})
    assert not is_of_texts(None)
