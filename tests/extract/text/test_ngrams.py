import numpy as np
import pytest
from sklearn.feature_extraction.text import HashingVectorizer

from privfeat.data import open_features


def rows_of(path, split="train"):
    with open_features(path) as file:
        return np.asarray(file[split].X)


def test_ngrams_are_those_of_scikit_learn(reviews, extract, tmp_path):
    kwargs = ("n_features=64", "analyzer=char_wb", "min_n=2", "max_n=3")
    assert extract(reviews, "--model-kwargs", *kwargs)[0] == 0
    hashing = HashingVectorizer(
        n_features=64, analyzer="char_wb", ngram_range=(2, 3), norm="l2"
    )
    expected = hashing.transform(["a bright film", "dull and long"]).toarray()
    found = rows_of(tmp_path / "out.h5")
    np.testing.assert_allclose(found[:2], expected, rtol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, rtol=1e-6)


def test_ngrams_of_a_text_do_not_depend_on_others(reviews, table, extract, tmp_path):
    assert extract(reviews, "--batch-size", "3")[0] == 0
    together = rows_of(tmp_path / "out.h5")
    alone = table(("very good", "good", "ann"), name="alone.csv")
    assert extract(alone, "--overwrite")[0] == 0
    np.testing.assert_array_equal(rows_of(tmp_path / "out.h5")[0], together[2])


def test_a_text_without_a_word_is_a_row_of_zeros(table, extract, tmp_path):
    status, _, err = extract(table(("!!!", "good", "a"), ("bad", "bad", "b")))
    assert status == 0
    assert "zeros" in err
    assert not rows_of(tmp_path / "out.h5")[0].any()


def test_pairs_stand_side_by_side(table, extract, tmp_path):
    header = ("first", "second", "verdict")
    same, other = ("a film", "a film", "good"), ("a film", "dull", "bad")
    path = table(same, other, header=header)
    columns = ("--text", "first", "second", "--model-kwargs", "n_features=128")
    assert extract(path, *columns)[0] == 0
    file = open_features(tmp_path / "out.h5")
    assert set(file) == {"train"}
    assert file.origin["pairs"] == ["u", "v", "|u - v|", "u * v"]
    parts = rows_of(tmp_path / "out.h5").reshape(2, 4, 128)
    u, v, distance, product = parts[1]
    np.testing.assert_allclose(np.abs(u - v) / 2**0.5, distance, atol=1e-6)
    assert not product.any()
    np.testing.assert_array_equal(parts[0, 0], parts[0, 1])
    assert not parts[0, 2].any()


@pytest.mark.parametrize(
    ("kwarg", "message"),
    [
        ("n=2", "must be among ['analyzer', 'max_n', 'min_n', 'n_features'], got 'n'"),
        ("n_features=65537", "whole number in [1, 65536], got 65537"),
        ("n_features=true", "whole number in [1, 65536], got True"),
        ("min_n=3", "min_n of --model-kwargs must be at most max_n"),
        ("analyzer=words", "analyzer of --model-kwargs must be among"),
    ],
)
def test_ngrams_refuse_what_is_out_of_range(reviews, extract, kwarg, message):
    status, _, err = extract(reviews, "--model-kwargs", kwarg)
    assert status == 1
    assert message in err


def test_several_processes_write_what_one_does(reviews, extract, tmp_path, monkeypatch):
    assert extract(reviews, "--users", "who")[0] == 0
    with open_features(tmp_path / "out.h5") as file:
        single = file["train"].X[:], file["train"].groups, file["classes"].X[:]
    (tmp_path / "out.h5").unlink()
    for number in "01":
        monkeypatch.setenv("RANK", number)
        monkeypatch.setenv("WORLD_SIZE", "2")
        assert extract(reviews, "--users", "who")[0] == 0
    with open_features(tmp_path / "out.h5") as file:
        joined = file["train"].X[:], file["train"].groups, file["classes"].X[:]
    for one, other in zip(single, joined, strict=True):
        np.testing.assert_array_equal(one, other)
