"""Every number that a test draws follows from the name of the test: a pytest plugin.

The operating system's entropy, as the noise sees it, is replaced by bytes that follow
from the name of the test, or from that of the fixture which draws them. So a test that
passed passes again, in any order and beside any load; two fits in one test still
differ, and statements still say "not seeded".

A test about fresh entropy opts out by ``@pytest.mark.fresh_noise(rate=1e-12)``, where
``rate`` bounds the probability that it fails though nothing is wrong. All rates
together must stay below ``LIMIT``, or nothing runs. Other processes are not reached:
``tests/test_entropy.py`` holds what the tests may fit there.
"""

import hashlib
import os
import random
import secrets
import sys
import threading
from contextlib import contextmanager

import numpy as np
import pytest

from tests.planting import Plant

LIMIT = 1e-6
MARKER = "fresh_noise"


class Entropy:
    """Bytes that follow from a name; without a name, the operating system's."""

    def __init__(self):
        self._lock = threading.Lock()
        self._state = ("", 0)

    def urandom(self, size):
        """Return so many bytes that no other call under this name returns."""
        with self._lock:
            name, count = self._state
            if name is None:
                return os.urandom(size)
            if not name:
                raise RuntimeError("noise is drawn in tests and fixtures alone.")
            self._state = name, count + 1
        return hashlib.shake_256(f"{name} {count}".encode()).digest(size)

    def randbits(self, bits):
        """Return a whole number of so many bits."""
        return int.from_bytes(self.urandom((bits + 7) // 8), "little") >> -bits % 8

    def default_rng(self, seed=None):
        """Return NumPy's generator; None takes its seed from here."""
        return np.random.default_rng(self.randbits(128) if seed is None else seed)

    @contextmanager
    def named(self, name):
        """Draw from ``name`` for a while, global generators included."""
        before = self._state, np.random.get_state(), random.getstate()  # noqa: NPY002
        self._state = name, 0
        seed = int.from_bytes(hashlib.sha256(str(name).encode()).digest()[:4], "little")
        np.random.seed(seed)  # noqa: NPY002
        random.seed(seed)
        if "torch" in sys.modules:
            seed_torch(sys.modules["torch"], seed)
        try:
            yield
        finally:
            self._state = before[0]
            np.random.set_state(before[1])  # noqa: NPY002
            random.setstate(before[2])


def seed_torch(torch, seed):
    """Seed the generators that are in use.

    ``torch.manual_seed`` would note, for each device that may come to be used, which
    lines called it: a third of a millisecond, five times a test.
    """
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)


ENTROPY = Entropy()


class Stand:
    """A module of which some functions are replaced, and others kept or refused."""

    def __init__(self, genuine, replaced, *, keep_others):
        self.__dict__.update(replaced)
        self._genuine, self._keep_others = genuine, keep_others

    def __getattr__(self, name):
        if not self._keep_others:
            raise AttributeError(f"tests/entropy.py has no stand-in for {name}")
        return getattr(self._genuine, name)


def replace_entropy():
    """Put the stand-ins where the noise takes its bits.

    Raises
    ------
    LookupError
        If the noise takes its bits from elsewhere by now.
    """
    plant = Plant()
    stands = {
        "operating system under the keys": Stand(
            os, {"urandom": ENTROPY.urandom}, keep_others=True
        ),
        "secrets under the keys": Stand(
            secrets,
            {"randbits": ENTROPY.randbits, "token_bytes": ENTROPY.urandom},
            keep_others=False,
        ),
    }
    for name, stand in stands.items():
        plant(name, stand)
    plant("generator of public numbers", ENTROPY.default_rng)


def total_rate(markers):
    """Return the sum of the stated rates, given ``(name of the test, marker)``.

    Raises
    ------
    pytest.UsageError
        If a test states no rate, or the sum is above the limit.
    """
    total = 0.0
    for name, marker in markers:
        rate = marker.kwargs.get("rate")
        if marker.args or set(marker.kwargs) != {"rate"} or not 0 < rate < LIMIT:
            raise pytest.UsageError(
                f"{name}: {MARKER} must state a rate in (0, {LIMIT}), as in "
                f"@pytest.mark.{MARKER}(rate=1e-12)."
            )
        total += rate
    if not total < LIMIT:
        raise pytest.UsageError(
            f"the stated failure rates must sum to less than {LIMIT}, got {total}."
        )
    return total


def pytest_configure(config):
    """Replace the entropy before any test is collected."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}(rate): draws from the operating system; fails at that rate",
    )
    replace_entropy()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Add up what the tests state, before some of them are deselected."""
    found = [(item.nodeid, item.get_closest_marker(MARKER)) for item in items]
    total_rate((name, marker) for name, marker in found if marker is not None)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    """Let a fixture draw the same whichever test asks for it first.

    Those of pytest, of which each parameter is one, draw nothing.
    """
    if fixturedef.func.__module__.startswith("_pytest."):
        return (yield)
    place = f"{request.node.nodeid} {getattr(request, 'param_index', 0)}"
    with ENTROPY.named(f"{fixturedef.baseid} {fixturedef.argname} {place}"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Let a test draw what follows from its name."""
    fresh = item.get_closest_marker(MARKER) is not None
    with ENTROPY.named(None if fresh else item.nodeid):
        return (yield)
