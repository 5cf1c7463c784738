"""What several processes must have in common, and what not; threads stand for them."""

import platform
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from scipy.sparse import csr_array

from privfeat import DPFC, PrivacyError, PrivacyLedger
from privfeat.distributed import initialize
from privfeat.estimation.fitting import agreed
from privfeat.estimation.team import _described, _rounding, check_team
from tests.teams import Board, Thread

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
X = np.arange(12.0).reshape(6, 2)
Y = np.arange(6) % 3


def said(rows, *differences):
    """Return what two processes hear that differ in what they check as told."""
    clf = DPFC(epsilon=1.0, n_iter=1, classes=range(3))
    common = {"seed": 1, "statement": clf.fit(X, Y).privacy_, "grouped": False}
    common |= {"features": X, "targets": Y, "classes_read": False, "params": {}}
    board = Board()

    def check(index):
        own = common | differences[index]
        targets, read = own.pop("targets"), own.pop("classes_read")
        problem = SimpleNamespace(targets=targets, classes_read=read)
        estimator = DPFC(epsilon=1.0, n_iter=1, classes=range(3), **own.pop("params"))
        team = Thread(index, 2, rows, board=board)
        try:
            check_team(team, estimator, problem=problem, about="", **own)
        except (PrivacyError, ValueError) as error:
            return str(error)
        return None

    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(check, range(2))
    assert first == second  # none goes on alone
    return first


def test_processes_share_rows():
    assert said("shared", {}, {}) is None
    for params in ({"center": np.zeros(2)}, {"budget_split": {"gram": 1.0}}):
        assert said("shared", {"params": params}, {"params": params}) is None


DIFFERENT = {
    "seed": {"seed": 2},
    "parameter": {"params": {"clip_norm": 2.0}},
    "array": {"params": {"center": np.array([0.1, 0.2])}},
    "mapping": {"params": {"budget_split": {"gram": 1.0, "gradient": 2.0}}},
    "order": {"targets": Y[::-1]},
    "features": {"features": X + 1.0},
    "type": {"features": X.astype(np.float32)},
    "number": {"features": np.concatenate([X, X])},
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_processes_that_share_rows_differ_in_nothing(name):
    assert "all processes must have the same" in said("shared", {}, DIFFERENT[name])


def test_processes_that_share_rows_round_them_alike(monkeypatch):
    """By one record more another process bounds others: by 20 for a stated 0.7."""
    names = ["x86_64", "aarch64"]
    monkeypatch.setattr(platform, "machine", lambda: names.pop())
    assert "the same processors, devices and libraries: use hosts" in said(
        "shared", {}, {}
    )


def test_processes_compile_alike():
    with jax.disable_jit():
        apart = _described(DPFC())
    assert apart != _described(DPFC())


def test_processes_with_rows_of_their_own_may_have_other_processors(monkeypatch):
    names = ["x86_64", "aarch64"]
    monkeypatch.setattr(platform, "machine", lambda: names.pop())
    own = {"features": X + 1.0}
    assert said("own", {}, own) is None


@pytest.mark.parametrize(
    ("flags", "same"),
    [
        ("--xla_cpu_max_isa=AVX2", False),
        ("--xla_cpu_multi_thread_eigen=false", False),
        ("--xla_dump_to=here", True),
        ("--xla_force_host_platform_device_count=2", True),
    ],
)
def test_flags_of_xla_by_which_code_differs_are_compared(monkeypatch, flags, same):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    told = _rounding()
    monkeypatch.setenv("XLA_FLAGS", flags)
    assert (_rounding() == told) is same


@pytest.mark.parametrize("params", [{"verbose": 1}, {"random_state": 3}])
def test_processes_may_differ_in_what_no_release_depends_on(params):
    """Of ``random_state``, the seed that was read from it is compared."""
    assert said("shared", {}, {"params": params}) is None


def test_processes_charge_one_ledger(tmp_path):
    budget = {"epsilon": 9.0, "delta": 1e-3}
    one, two = (
        PrivacyLedger(tmp_path / name, dataset="x", **budget) for name in ("a", "b")
    )
    again = PrivacyLedger(tmp_path / "a", dataset="x")
    ledgers = [{"params": {"ledger": ledger}} for ledger in (one, again, two)]
    assert said("shared", *ledgers[:2]) is None
    assert "the same fit" in said("shared", *ledgers[1:])
    assert "the same fit" in said("shared", {}, ledgers[0])


@pytest.mark.parametrize("broken", [0, 1])
def test_all_processes_end_if_one_cannot_do_its_part(broken):
    """The others waited for it, such as one whose ledger cannot be read."""
    board = Board()

    def take_part(index):
        def act():
            if index == broken:
                raise OSError("gone")
            return index

        try:
            return agreed(Thread(index, 2, board=board), "read", act)
        except (OSError, PrivacyError) as error:
            return str(error)

    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(take_part, range(2)))
    assert found[broken] == "gone"
    assert found[1 - broken].startswith("every process must be able to read, but")


def test_sparse_rows_are_alike_whatever_the_type_of_their_indices():
    rows = [csr_array(X), csr_array(X)]
    rows[1].indices, rows[1].indptr = (
        places.astype(np.int64) for places in (rows[1].indices, rows[1].indptr)
    )
    same, other = ({"features": each} for each in rows)
    assert other["features"][:3].indices.dtype == np.int64
    assert said("shared", same, other) is None
    assert "got the same twice" in said("own", same, other)
    assert "the same rows" in said("shared", same, {"features": csr_array(X + 1.0)})


def test_processes_have_rows_of_their_own():
    assert said("own", {}, {"features": X + 1.0}) is None
    assert "got the same twice: every record would count twice" in said("own", {}, {})


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"classes_read": True}, "classes must be given if every process has its own"),
        ({"grouped": True}, "groups must be None if every process has its own rows"),
    ],
)
def test_own_rows_are_refused_where_a_process_cannot_know_those_of_others(own, message):
    assert message in said("own", own, own | {"features": X + 1.0})
    assert said("shared", own, own) is None


def test_rows_of_all_processes_are_counted_together(plant):
    plant("most rows of all processes", 11)
    other = {"features": X + 1.0}
    assert "all processes together must have at most 11" in said("own", {}, other)
    plant("most rows of all processes", 12)
    assert said("own", {}, other) is None


@pytest.mark.parametrize(("first", "last"), [(2040, 2060), (1100, 4000)])
def test_rows_that_one_process_has_in_another_order_are_found(first, last):
    """Where one would count in both: the second process begins with row 2048."""
    rows = np.random.default_rng(0).normal(size=(4096, 2))
    other = rows.copy()
    other[first:last] = np.roll(rows[first:last], 1, axis=0)
    same = {"targets": np.zeros(4096, int)}
    found = said("shared", same | {"features": rows}, same | {"features": other})
    assert "the same rows" in found


@pytest.mark.parametrize(
    ("host", "bound"), [("localhost", True), ("127.0.0.1", True), ("node0", False)]
)
def test_a_job_on_one_host_listens_there_alone(monkeypatch, host, bound):
    """The first process listened on all addresses of the machine."""
    told = []
    monkeypatch.setattr(
        jax.distributed, "initialize", lambda **given: told.append(given)
    )
    initialize(coordinator_address=f"{host}:1", num_processes=1, process_id=0)
    found = told[0].get("coordinator_bind_address")
    assert found == (f"{host}:1" if bound else None)
