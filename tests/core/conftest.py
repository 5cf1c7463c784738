"""Records as the core's ``Rows``, made of given whole numbers; places for ledgers."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.plan import Query
from privfeat.core.ledger.privacy_ledger import PrivacyLedger
from privfeat.core.sums.records import CHUNK_ROWS, Chunk
from tests.core.plans import QUERY_SETS
from tests.core.statements import PLANS, QUERIES
from tests.postgres import find_program, postgres_server


class GridRows:
    """Rows that are whole numbers already; ``chunk_rows`` of them to a chunk.

    Labels of shape (n,), or (n, k) filled up with -1.
    """

    users = None

    def __init__(self, rows, labels, *, step, chunk_rows=CHUNK_ROWS, private=True):
        self.step, self.sparse = step if private else None, False
        self.n_columns = rows.shape[1]
        self._rows, self._unit = rows, step
        self._labels = labels if labels.ndim == 2 else labels[:, None]
        self._chunk_rows = chunk_rows

    def chunks(self):
        rows, labels = self._rows, self._labels
        for start in range(0, len(rows), self._chunk_rows):
            part = slice(start, start + self._chunk_rows)
            padding = CHUNK_ROWS - len(rows[part])
            block = np.pad(rows[part], ((0, padding), (0, 0))).astype(np.float32)
            norms = np.linalg.norm(block.astype(np.float64), axis=1)
            codes = np.pad(labels[part], ((0, padding), (0, 0)), constant_values=-1)
            if self.step is None:
                block = block * np.float32(self._unit)
            with jax.enable_x64(True):
                yield Chunk(
                    jnp.asarray(block),
                    jnp.asarray(norms * self._unit),
                    jnp.asarray(codes.astype(np.int32)),
                )


@pytest.fixture
def grid_rows():
    return GridRows


@pytest.fixture(scope="session")
def postgres_url():
    """Return the URL of a server that runs as long as the tests."""
    pytest.importorskip("sqlalchemy")
    if find_program("initdb") is None:
        pytest.skip("PostgreSQL is not installed")
    with postgres_server() as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def location(request, tmp_path):
    """Return where a ledger may be: a path without a file, or a database."""
    if request.param == "postgres":
        return request.getfixturevalue("postgres_url")
    return str(tmp_path / "team.ledger")


_names = (f"data set {number}" for number in itertools.count())


@pytest.fixture
def ledger(location):
    """Return the ledger of a new data set."""
    numbers = {"epsilon": 3.0, "delta": 1e-5, "new_dataset": True}
    return PrivacyLedger(location, dataset=next(_names), **numbers)


@pytest.fixture(params=QUERY_SETS)
def queries(request):
    """Return the queries of a fit."""
    return QUERY_SETS[request.param]


@pytest.fixture(params=[*PLANS, "sampled"])
def plan(request):
    """Return a plan: exact, zCDP, without privacy, or of sampled records."""
    if request.param == "sampled":
        query = Query("gradient", 1.0, count=3, sampling_prob=0.25)
        return plan_releases([query], noise_multiplier=3.0, accounting="pld")
    return plan_releases(QUERIES, **PLANS[request.param])
