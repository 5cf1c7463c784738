"""Settings of every test: one thread per worker, strict arrays, fixed examples."""

import gc
import os

# Two workers with a thread pool each are slower than one thread per worker. The
# libraries read these when they are first imported, hence before the imports below.
if "PYTEST_XDIST_WORKER" in os.environ:
    for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(_name, "1")
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
os.environ.setdefault("MPLBACKEND", "Agg")

import hypothesis
import jax
import pytest

from tests.fuzz.conftest import TRIED
from tests.planting import Plant

# Doctests included: what they draw is no chance, and what they account is kept.
pytest_plugins = ["tests.combinations", "tests.entropy", "tests.loss_distributions"]

# Broadcasting between ranks hides wrong shapes. x64 is not switched on: the library
# asks for it where it needs it, and is tested as it is shipped.
jax.config.update("jax_numpy_rank_promotion", "raise")

# "ci" is what `make test` and the CI run: the same examples every time.
hypothesis.settings.register_profile(
    "ci", derandomize=True, database=None, deadline=None, print_blob=True
)
hypothesis.settings.register_profile("dev", deadline=None)
hypothesis.settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", "ci" if "CI" in os.environ else "dev")
)


@pytest.fixture(scope="session")
def with_timm():
    """Skip what needs timm and torch where they are not installed."""
    pytest.importorskip("torch")
    pytest.importorskip("timm")


@pytest.fixture
def plant():
    """Return what plants faults, by the names in tests/planting.py, until the end."""
    with Plant().context() as planted:
        yield planted


def pytest_terminal_summary(terminalreporter):
    """Print the counts; here, since workers alone import tests/fuzz/conftest.py."""
    lines = []
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) != "teardown":
                continue
            found = dict(report.user_properties).get(TRIED)
            if found is not None:
                words = ", ".join(f"{count} {word}" for word, count in found.items())
                total = sum(found.values())
                lines.append(f"{report.nodeid.split('::')[-1]}: {total} ({words})")
    if lines:
        terminalreporter.section("bad inputs tried")
        for line in sorted(lines):
            terminalreporter.write_line(line)


def pytest_collection_finish():
    """Let the garbage collector pass over what was imported: a fifth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def pytest_unconfigure():
    """Let it collect all at the end, else the compiler calls what is left a leak."""
    gc.unfreeze()
