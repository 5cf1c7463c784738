"""Against the vectors of the Skein submission, and against the cipher in integers."""

import jax
import numpy as np
import pytest

from privfeat.core.noise.draws import _FEWEST_BLOCKS, _piece, n_blocks_for, words_of
from privfeat.core.noise.threefish import blocks
from tests.core.noise.threefish import threefish_256


def from_bytes(text):
    return [int.from_bytes(bytes.fromhex(part), "little") for part in text.split()]


def test_the_reference_encrypts_as_published():
    """The first known answer of Threefish-256 in the submission of Skein to NIST."""
    expected = "84DA2A1F8BEAEE94 7066AE3E3103F1AD 536DB1F4A1192495 116B9F3CE6133FD8"
    assert threefish_256([0] * 4, [0] * 4) == from_bytes(expected)


@pytest.mark.parametrize(
    "key", [[0] * 4, [1, 2, 3, 4], [2**64 - 1] * 4, [2**63, 5, 2**40, 2**64 - 7]]
)
@pytest.mark.parametrize("start", [0, 7, 2**40])
def test_blocks_are_those_of_the_reference(key, start):
    numbers = range(start, start + 20)
    expected = [threefish_256(key, [number, 0, 0, 0]) for number in numbers]
    with jax.enable_x64(True):
        found = jax.jit(blocks, static_argnums=1)(np.array(key, "u8"), 20, start)
    assert np.array(expected, np.uint64).T.tolist() == np.array(found).tolist()


def test_blocks_begin_with_number_zero():
    key = np.array([1, 2, 3, 4], "u8")
    with jax.enable_x64(True):
        found = jax.jit(blocks, static_argnums=1)(key, 1)
    assert np.ravel(found).tolist() == threefish_256(key.tolist(), [0] * 4)


@pytest.mark.parametrize("n_words", [0, 1, 2**14 - 1, 2**14, 2**14 + 1, 2**15 + 5])
def test_words_come_in_pieces_of_one_shape(n_words):
    """Code compiled for their number would tell of the records they are drawn for."""
    key = np.array([1, 2, 3, 4], "u8")
    compiled = _piece._cache_size() or 1
    found = words_of(key, n_words)
    assert _piece._cache_size() <= compiled
    assert (found.dtype, found.shape) == (np.uint64, (n_words,))
    for piece in range(0, n_words, 2**14):
        first = threefish_256(key.tolist(), [piece // 4, 0, 0, 0])[0]
        assert found[piece] == first


@pytest.mark.validation
@pytest.mark.parametrize(
    "bad",
    [
        [1, 2, 3, 4],
        np.zeros(4),
        np.zeros(4, "i8"),
        np.zeros(4, "u4"),
        np.zeros(3, "u8"),
        np.zeros(5, "u8"),
        np.zeros((4, 1), "u8"),
        np.uint64(1),
    ],
)
def test_a_key_of_another_size_is_refused(bad):
    """JAX would repeat, or cut off, words that are not there: a weaker key."""
    with pytest.raises(TypeError, match="key must be four words of 64 bits"):
        words_of(bad, 1)


@pytest.mark.slow
def test_no_word_and_no_key_repeats_in_a_million():
    """Two of 2**20 words are equal with probability 3e-8; this key is fixed."""
    one, two = (words_of(np.array([1, 0, 0, last], "u8"), 2**20) for last in (0, 1))
    assert len(np.unique(np.concatenate([one, two]))) == 2**21


@pytest.mark.parametrize("n_words", [0, 1, 64, 65, 129, 4097, 10**6, 10**9 + 1])
def test_sizes_tell_four_bits_alone(n_words):
    """What is compiled, and kept in a file, tells little of how many were drawn."""
    n_blocks = n_blocks_for(n_words)
    assert n_words <= 4 * n_blocks
    assert n_blocks <= max(_FEWEST_BLOCKS, 1.125 * n_words / 4 + 2)
    assert f"{n_blocks:b}"[4:].strip("0") == ""
