import csv

import pytest

WORDS = "the film was bright and good dull bad long very . card lost arrived".split()


@pytest.fixture
def table(tmp_path):
    """Return a function that writes rows into ``reviews.csv``, under a header."""

    def write(*rows, header=("review", "verdict", "who"), name="reviews.csv"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([header, *rows])
        return path

    return write


@pytest.fixture
def reviews(table):
    """Return a table of four reviews by three people."""
    return table(
        ("a bright film", "good", "ann"),
        ("dull and long", "bad", "bob"),
        ("very good", "good", "ann"),
        ("very bad . very long . very dull . the film was long", "bad", "eve"),
    )


@pytest.fixture
def extract(run, tmp_path):
    """Return a function that extracts texts into ``out.h5``, as n-grams by default."""

    def extract_texts(data, *argv):
        given = {word for word in argv if str(word).startswith("--")}
        defaults = {
            "--text": ["review"],
            "--target": ["verdict"],
            "--class-names": ["good", "bad"],
            "--model": ["ngrams"],
            "--dtype": ["float32"],
        }
        words = [w for k, v in defaults.items() if k not in given for w in (k, *v)]
        out = ("--out", tmp_path / "out.h5", "--quiet")
        return run("--data", data, *words, *argv, *out)

    return extract_texts


@pytest.fixture(scope="session")
def encoder(tmp_path_factory):
    """Return the folder of a tiny sentence encoder with random weights."""
    torch = pytest.importorskip("torch")
    sentence_transformers = pytest.importorskip("sentence_transformers")
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("encoder")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (folder / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    tokenizer = transformers.BertTokenizerFast(vocab=str(folder / "vocab.txt"))
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    transformers.BertModel(config).save_pretrained(folder / "bert")
    tokenizer.model_max_length = 48
    tokenizer.save_pretrained(folder / "bert")
    model = sentence_transformers.SentenceTransformer(str(folder / "bert"))
    model.save(str(folder / "tiny"))
    card = "---\ntags:\n- test\nlicense: cc0-1.0\n---\nA model.\n"
    (folder / "tiny" / "README.md").write_text(card, encoding="utf-8")
    return folder / "tiny"
