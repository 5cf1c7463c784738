"""Whose file is whose, as a table says."""

from itertools import chain

import numpy as np
import pytest

from privfeat.data.users import ids_of, named, read_users, user_of

FILES = ["train/a/1.png", "train/a/2.png", "train/b/3.png"]


def table(tmp_path, text):
    path = tmp_path / "users.csv"
    path.write_text(text)
    return path


def test_spaces_around_a_name_make_no_other_user(tmp_path):
    """Two users would each get the guarantee of one."""
    rows = "file,user\ntrain/a/1.png,p 1\ntrain/a/2.png,p 1 \ntrain/b/3.png,\u00a0p 1\n"
    assert read_users(table(tmp_path, rows), FILES) == ["p 1"] * 3


def test_two_spellings_of_a_name_make_no_other_user(tmp_path):
    """One system writes the accent with its letter, another one behind it."""
    rows = "".join(
        f"{file},{name}\n"
        for file, name in zip(FILES, ["Jos\u00e9", "Jose\u0301", "Jose"], strict=True)
    )
    users = read_users(table(tmp_path, f"file,user\n{rows}"), FILES)
    assert users == ["Jos\u00e9", "Jos\u00e9", "Jose"]


@pytest.mark.parametrize(
    "word",
    [
        *(
            "NA",
            "#N/A",
            "#NA",
            "#N/A N/A",
            "-nan",
            "-1.#IND",
            "\\N",
            "(null)",
            "[NULL]",
        ),
        *("--", ".", "#VALUE!", "#REF!", "N.A.", "\N{EN DASH}", "\N{EM DASH}", "?"),
        *("\N{ZERO WIDTH SPACE}", "\N{NO-BREAK SPACE}", "Unknown", "<NA>", b"NaN", b""),
        *("N/A", "n. a.", "'none'", "<nil>", "NaT", "#DIV/0!", "1.#QNAN", "***", "#"),
        *("N A", "n_a", "N'A", "n. a."),
        *("-1", "-1.0", "\N{MINUS SIGN}1", "-9223372036854775808", "-2147483648."),
    ],
)
def test_a_word_for_nobody_is_no_name(word):
    """Many without a name would have the protection of one."""
    assert user_of(word) == ""
    with pytest.raises(ValueError, match="must name the user of each row"):
        named(np.array(["ann", word], object))


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("Ann Smith", "Ann\N{NO-BREAK SPACE}Smith"),
        ("Ann Smith", "Ann  Smith"),
        ("Ann", "\N{ZERO WIDTH NO-BREAK SPACE}Ann"),
        ("Ann", "A\N{SOFT HYPHEN}nn"),
        ("Ann", "\N{FULLWIDTH LATIN CAPITAL LETTER A}nn"),
        ("7", "7.0"),
        ("-7", "-7.0"),
        ("-7", "\N{MINUS SIGN}7"),
        ("Zo\u00e9", "Zo\u00e9".encode()),
        ("Zo\u00e9", "Zoe\u00ad\u0301"),
        ("Ann", "Ann\u3164"),
        ("Ann", "A\u034fnn"),
        ("Ann \u2764", "Ann \u2764\ufe0f"),
        ("Ann Smith", "Ann\u2800\u200b Smith\u0007"),
    ],
)
def test_one_person_has_one_name(name, other):
    assert user_of(name) == user_of(other) == name


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("\u7530\ue000", "\u7530\ue001"),  # letters that a company made
        ("A\U0001fae8", "A\U0001fae9"),  # newer than the tables of Python 3.11
        ("A\u0378", "A\u0379"),  # in no table yet
        ("\u0600\u0661", "\u0661"),  # the Arabic number sign is drawn
        (b"\0\1", b"0001"),
        (b"\0\1", "0001"),
        *[tuple(n.decode("utf-8", "surrogateescape") for n in (b"M\xfc", b"M\xf6"))],
    ],
)
def test_two_persons_keep_two_names(one, other):
    """Together they would share what one record may add."""
    assert user_of(one) != user_of(other)


def test_the_name_of_a_name_is_that_name():
    """Pipelines, and steps within them, each make names of what they are given."""
    seldom = range(0xFB00, 0x10000), range(0xE0000, 0xE1000)
    for number in chain(range(0x3400), *seldom):
        name = user_of(f"e{chr(number)}\u0301")
        assert user_of(name) == name
    for key in (b"\0\1", b"\xff", b"NA\0"):
        assert user_of(user_of(key)) == user_of(key) != ""


@pytest.mark.parametrize(
    "one",
    [
        *("n", "N1", "a.1", "7.5", "nanna", "J\u00f8rgen", "\u5f20"),
        *("Nana", "Nat", "Nil", "N.A.N.", "1IND", "#Ben!", "#1!", "\U0001f600", "-7"),
    ],
)
def test_a_name_stays_as_it_is(one):
    assert user_of(one) == one


@pytest.mark.parametrize("number", [-1, -(2**63), -(2**31)])
@pytest.mark.parametrize("kind", [list, np.asarray])
def test_a_number_for_nobody_is_no_user(number, kind):
    """Codes of categories, and integers made of NaN, have it for a missing one."""
    with pytest.raises(ValueError, match="or what stands for a missing one"):
        ids_of(kind([7, number, 8]))
    assert ids_of(kind([-7, 2**31, 0])).tolist() == [-7, 2**31, 0]


@pytest.mark.parametrize("number", [2**63, 2**64 - 1, 2**32 - 1])
def test_an_unsigned_number_for_nobody_is_no_user(number):
    """2**63 was NaN, the others were -1 before they became numbers without a sign."""
    with pytest.raises(ValueError, match="or what stands for a missing one"):
        ids_of(np.array([7, number, 8], np.uint64))
    with pytest.raises(ValueError, match="must name the user of each row"):
        ids_of([7, number, 8])
    assert user_of(str(number)) == ""
    assert ids_of(np.array([7, 128], np.uint8)).tolist() == [7, 128]


def test_users_in_raw_bytes_are_told_apart():
    keys = [bytes([first, 31]) for first in range(256)]
    assert len({user_of(key) for key in keys}) == 256


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("file,user\ntrain/a/1.png,x\ntrain/a/2.png,  \n", "none for train/a/2.png"),
        ("file,user\ntrain/a/1.png,x\ntrain/a/2.png,NA\n", "none for train/a/2.png"),
        ("file,user,user\ntrain/a/1.png,x,y\n", "each column once"),
        ("file,file,user\ntrain/a/1.png,z,y\n", "each column once"),
    ],
)
def test_a_table_that_is_not_clear_is_refused(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_users(table(tmp_path, text), FILES)


@pytest.mark.parametrize(
    "word",
    [
        *(
            "1.10101199003070016e+17",
            "1.10101E+17",
            "1,10101E+17",
            "1.1E17",
            "1e+05",
            "-2.e+3",
        ),
        *("110101199003070016.0", "9007199254740992.0", "9" * 5000 + ".0"),
    ],
)
def test_a_number_that_was_shortened_is_no_name(word, tmp_path):
    """Persons with long codes passed for one, and one of them moved a sum twice."""
    for call in (user_of, lambda one: ids_of([one, "ann"])):
        with pytest.raises(ValueError, match="it may be of several users"):
            call(word)
    with pytest.raises(ValueError, match="it may be of several users"):
        read_users(table(tmp_path, f'file,user\n{FILES[0]},"{word}"\n'), FILES[:1])


def test_codes_that_no_program_shortened_are_names():
    for name in ("110101199003070016", "1e05", "3e10", "7.5", "e+5", "1.1.e+2"):
        assert user_of(name) == name
    assert user_of("9007199254740991.0") == "9007199254740991"


@pytest.mark.parametrize("other", [("ann",), {"name": "ann"}, ["ann"], 1j])
def test_what_is_no_name_is_no_user(other):
    users = np.empty(2, object)
    users[:] = ["ann", other]
    with pytest.raises(ValueError, match="must be names, numbers or dates"):
        named(users)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.longdouble])
def test_no_float_is_a_user(kind):
    with pytest.raises(ValueError, match="or may have rounded, as a float"):
        named(np.array([7, 8], kind))
