import hashlib
import itertools

import jax
import numpy as np
import pytest

from privfeat.core.noise.keys import KeyStream, SharedKeys
from privfeat.core.sums.processes import Team
from privfeat.exceptions import PrivacyError


def words(key):
    return tuple(np.asarray(jax.random.key_data(key)).tolist())


def drawn(seed, count):
    stream = KeyStream(seed)
    return [words(stream.draw()) for _ in range(count)]


@pytest.mark.parametrize("seed", [None, 0, 7, 2**64 - 1])
def test_key_stream_repeats_no_key(seed):
    keys = drawn(seed, 500)
    assert len(set(keys)) == len(keys)


def test_key_stream_without_seed_ignores_global_seeds():
    np.random.seed(0)  # noqa: NPY002
    first = drawn(None, 5)
    np.random.seed(0)  # noqa: NPY002
    assert not set(first) & set(drawn(None, 5))


@pytest.mark.statistical
@pytest.mark.fresh_noise(rate=1e-8)
def test_key_stream_without_seed_uses_all_64_bits():
    """Of 200 keys each bit is set in 55 to 145; false-positive rate below 1e-8."""
    bits = np.array(
        [
            [int(bit) for word in key for bit in f"{word:032b}"]
            for key in drawn(None, 200)
        ]
    )
    assert bits.shape == (200, 64)
    assert np.all((bits.sum(axis=0) >= 55) & (bits.sum(axis=0) <= 145))


@pytest.mark.parametrize("seed", [0, 2**40, 2**64 - 1])
def test_key_stream_with_a_seed_is_reproducible(seed):
    assert drawn(seed, 5) == drawn(seed, 5)


def test_key_stream_tells_large_seeds_apart():
    """With 64-bit types off, ``jax.random.key(2**40)`` equals ``key(0)``."""
    seeds = [0, 1, 2**31, 2**32, 2**32 + 1, 2**40, 2**63, 2**64 - 1]
    streams = [set(drawn(seed, 50)) for seed in seeds]
    for one, two in itertools.combinations(streams, 2):
        assert not one & two


@pytest.mark.parametrize(("seed", "seeded"), [(None, False), (0, True)])
def test_key_stream_knows_whether_it_is_seeded(seed, seeded):
    assert KeyStream(seed).seeded is seeded


@pytest.mark.validation
@pytest.mark.parametrize("seed", [-1, 2**64])
def test_key_stream_refuses_a_seed_outside_its_range(seed):
    with pytest.raises(ValueError, match="seed must be in"):
        KeyStream(seed)


@pytest.mark.parametrize("seed", [None, 0, 2**64 - 1])
def test_key_stream_repeats_no_word(seed):
    keys = KeyStream(seed)
    words = np.concatenate([keys.draw_words(n) for n in (300, 1, 0, 200)])
    assert words.dtype == np.uint64
    assert len(set(words.tolist())) == 501


def test_key_stream_with_a_seed_draws_the_same_words_everywhere():
    """Of two seeds and two calls no words are shared; SHAKE-256 has no platform."""
    one, two = (
        [KeyStream(seed) for seed in (1, 1, 11)],
        KeyStream(1),
    )
    two.draw_words(3)
    first = [keys.draw_words(3).tolist() for keys in (*one, two)]
    assert first[0] == first[1]
    assert not set(first[0]) & {*first[2], *first[3]}
    digest = hashlib.shake_256(b"privfeat 1 1").digest(24)
    assert first[0] == [int.from_bytes(digest[i : i + 8], "little") for i in (0, 8, 16)]


@pytest.mark.statistical
@pytest.mark.fresh_noise(rate=1e-8)
def test_key_stream_without_seed_draws_all_64_bits():
    """Of 200 words each bit is set in 55 to 145; false-positive rate below 1e-8."""
    words = KeyStream(None).draw_words(200)
    counts = [int(np.sum(words >> np.uint64(bit) & np.uint64(1))) for bit in range(64)]
    assert 55 <= min(counts)
    assert max(counts) <= 145


@pytest.mark.parametrize("seed", [None, 3])
def test_key_stream_draws_integers_of_64_bits(seed):
    """Of 64 draws, one at least is above 2**63 and one below 2**32 beyond its half."""
    stream = KeyStream(seed)
    numbers = [stream.draw_integer() for _ in range(64)]
    assert len(set(numbers)) == 64
    assert all(0 <= number < 2**64 for number in numbers)
    assert any(number >= 2**63 for number in numbers)
    assert any(number % 2**32 >= 2**31 for number in numbers)


def test_key_stream_of_an_integer_is_a_key_of_its_own():
    stream, same = KeyStream(3), KeyStream(3)
    high, low = words(same.draw())
    assert stream.draw_integer() == (high << 32) + low
    assert words(stream.draw()) == words(same.draw())


def test_key_stream_of_another_process_has_other_keys():
    keys = [words(KeyStream(3, process).draw()) for process in range(5)]
    assert len(set(keys)) == 5
    assert keys[0] == words(KeyStream(3).draw())


def test_key_stream_goes_on_from_a_position():
    whole, first, second = KeyStream(5), KeyStream(5), KeyStream(5)
    expected = [words(whole.draw()) for _ in range(6)]
    found = [words(first.draw()) for _ in range(4)]
    second.draw()  # what a new run draws before it finds where it was
    second.skip_to(first.position)
    found += [words(second.draw()) for _ in range(2)]
    assert found == expected


def test_key_stream_without_a_seed_skips_nothing():
    stream = KeyStream(None)
    stream.skip_to(7)
    stream.skip_to(7)  # where it is
    assert stream.position == 7
    assert words(stream.draw()) != words(stream.draw())


@pytest.mark.parametrize("position", [0, 1, float("nan")])
def test_key_stream_does_not_go_back(position):
    stream = KeyStream(5)
    stream.draw(), stream.draw_words(3)
    with pytest.raises(ValueError, match="a key would be drawn twice"):
        stream.skip_to(position)
    assert stream.position == 2


@pytest.mark.parametrize("seed", [None, 3])
def test_noise_keys_have_256_bits_and_differ(seed):
    """Keys of 64 bits would repeat at random; these differ in every word."""
    streams = [KeyStream(seed), KeyStream(None if seed is None else 4)]
    keys = np.array([s.draw_noise_key() for s in streams for _ in range(500)])
    assert keys.shape == (1000, 4)
    assert len(np.unique(keys)) == 4000


def test_noise_keys_of_a_seed_do_not_depend_on_the_platform():
    digest = hashlib.shake_256(b"privfeat 5 1").digest(32)
    expected = np.frombuffer(digest, "<u8")
    np.testing.assert_array_equal(KeyStream(5).draw_noise_key(), expected)


@pytest.mark.parametrize("draw", ["draw", "draw_noise_key", "draw_integer"])
def test_key_stream_ends(draw):
    stream = KeyStream(1)
    stream.skip_to(2**32)
    with pytest.raises(PrivacyError, match="at most"):
        getattr(stream, draw)()


class Echo(Team):
    """A process that hears what the first has drawn, under one seed."""

    def from_first(self, values, what="value", grid_step=1.0):
        if self.index == 0:
            heard.append(values.copy())
            return values
        return heard.pop(0)


heard = []


@pytest.mark.parametrize("seed", [None, 7])
def test_shared_keys_are_those_of_the_first_process(seed):
    first, second = (SharedKeys(seed, Echo(index, 2)) for index in range(2))
    for _ in range(5):
        assert words(first.draw()) == words(second.draw())
    assert first.draw_noise_key().tolist() != second.draw_noise_key().tolist()
    assert first.position == second.position == 6


def test_shared_keys_of_one_process_are_its_keys():
    plain, shared = KeyStream(7), SharedKeys(7, Team())
    for _ in range(3):
        assert words(plain.draw()) == words(shared.draw())
        assert plain.draw_words(4).tolist() == shared.draw_words(4).tolist()
    assert plain.draw_integer() == shared.draw_integer()
