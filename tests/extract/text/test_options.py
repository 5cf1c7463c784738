import pytest

from privfeat_extract.arguments import parse

BASE = ["--data", "r.csv", "--model", "ngrams", "--out", "o.h5"]
TEXTS = [*BASE, "--text", "a", "--target", "b", "--class-names", "x", "y"]


def test_parse_reads_columns_of_texts():
    options = parse([*TEXTS, "--users", "who"])
    assert options.text == ("a",)
    assert options.class_names == ("x", "y")
    assert (options.target, options.users, options.max_length) == ("b", "who", None)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([*BASE], "--model ngrams must go with --text"),
        ([*BASE, "--target", "b"], "--target must go with --text"),
        ([*BASE, "--text", "a", "--target", "b"], "must be given together"),
        ([*BASE, "--text", "a", "--class-names", "x", "y"], "must be given together"),
        ([*TEXTS, "--text", "a", "a"], "two different ones for pairs"),
        ([*TEXTS, "--text", "a", "b", "c"], "must be one column"),
        ([*TEXTS, "--model", "other"], "--text must go with one --model"),
        ([*TEXTS, "--crop", "32"], "--crop must not go with --text"),
        ([*TEXTS, "--pool", "avg"], "--pool must not go with --text"),
        ([*TEXTS, "--no-pretrained"], "--no-pretrained must not go with --text"),
        ([*TEXTS, "--groups", "g.csv"], "must not go with --text. Pass --users"),
        ([*TEXTS, "--checkpoint", "c"], "Pass its folder as --model"),
        ([*TEXTS, "--max-length", "9"], "--max-length must not go with --model ngrams"),
    ],
)
def test_parse_refuses_what_is_not_for_texts(capsys, given, message):
    with pytest.raises(SystemExit) as stopped:
        parse(given)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
