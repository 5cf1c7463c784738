"""What a device, or its settings, may not do to a product."""

import os
import subprocess
import sys
from itertools import product
from typing import NamedTuple

import jax
import numpy as np
import pytest

from privfeat import DPFC, DPLeastSquares, PrivacyLedger
from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.plan import Query
from privfeat.core.noise.keys import KeyStream
from privfeat.core.sums import devices, trials
from privfeat.core.sums.arithmetic import host
from privfeat.core.sums.devices import check_exact_products
from privfeat.exceptions import PrivacyError
from tests.core.mechanisms import charged_mechanism


@pytest.fixture(autouse=True)
def fresh():
    """Forget what earlier checks found, and what planted devices did."""
    for checked in (trials.products_are_exact, devices._bounds_hold):
        checked.cache_clear()
    yield
    for checked in (trials.products_are_exact, devices._bounds_hold):
        checked.cache_clear()


@pytest.fixture
def fresh_rows():
    """Forget what was found of the places of rows, which residuals alone decide."""
    host.rows_are_alike.cache_clear()
    yield
    host.rows_are_alike.cache_clear()


def shared_scale(found, bits=44):
    """Return a product that keeps so many bits below its largest entry alone."""
    step = 2.0 ** (np.floor(np.log2(np.max(np.abs(found)))) - bits)
    return np.round(np.asarray(found) / step) * step


def one_off(found):
    """Return a product that is wrong by one at one place."""
    wrong = np.array(found)
    wrong[-1, -1] += 1.0
    return wrong


def not_whole(found):
    wrong = np.array(found)
    wrong[0, -1] += 0.25
    return wrong


def test_this_machine_is_exact():
    check_exact_products()


@pytest.mark.slow
def test_products_of_accelerators_are_those_that_are_tried(monkeypatch, plant):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    plant("products of rows with others", None)
    check_exact_products()
    genuine = plant.genuine("products of an accelerator")
    plant("products of an accelerator", lambda *rows: map(one_off, genuine(*rows)))
    trials.products_are_exact.cache_clear()
    with pytest.raises(PrivacyError, match="products must be exact"):
        check_exact_products()


@pytest.mark.parametrize("wrong", [shared_scale, one_off, not_whole])
@pytest.mark.parametrize(
    ("place", "n_outputs"), [("gram", 0), *product(["sums", "scores"], [1, 4, 128])]
)
def test_a_wrong_product_is_found_and_refused(plant, place, n_outputs, wrong):
    gram = plant.genuine("product of rows with themselves")
    products = plant.genuine("products of rows with others")
    if place == "gram":
        plant("product of rows with themselves", lambda rows, _: wrong(gram(rows)))
    else:

        def planted(rows, narrow, coef):
            sums, scores = products(rows, narrow, coef)
            if len(coef) != n_outputs:
                return sums, scores
            return (wrong(sums), scores) if place == "sums" else (sums, wrong(scores))

        plant("products of rows with others", planted)
    clf = DPFC(epsilon=1.0, classes=[0, 1])
    with pytest.raises(PrivacyError, match="products must be exact"):
        clf.fit([[1.0], [2.0]], [0, 1])
    assert not hasattr(clf, "privacy_")


class Clipped(NamedTuple):
    rows: np.ndarray


def overflown(rows):
    """As ``1 / largest`` taken first, and times the size of the grid, overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        bounded = rows * (2.0**20 / np.max(np.abs(rows), axis=1, keepdims=True))
    return np.nan_to_num(bounded, nan=0.0, posinf=2.0**63)


def not_left_out(rows):
    """As if no number were NaN."""
    short = np.minimum(np.abs(np.nan_to_num(rows)), 1.0)
    return np.minimum(short * 2.0**30, 2.0**19)


@pytest.mark.parametrize("wrong", [overflown, not_left_out])
def test_bounds_that_do_not_hold_are_refused(plant, wrong):
    plant("clip that a device is tried with", lambda rows, **_: Clipped(wrong(rows)))
    devices.check_devices(private=False)
    with pytest.raises(PrivacyError, match="must compute as IEEE 754 says"):
        devices.check_devices(private=True)


def last_row_apart(loss, scores, labels):
    """As code for the rest of a vector, which rounds otherwise."""
    found = np.array(scores)
    found[-1] = np.nextafter(found[-1], np.float32(np.inf))
    return found


def columns_apart(loss, scores, labels):
    return scores + np.float32(np.sum(scores[0]))


@pytest.mark.usefixtures("fresh_rows")
@pytest.mark.parametrize("wrong", [last_row_apart, columns_apart])
def test_rows_that_depend_on_their_place_are_refused(plant, wrong):
    plant("residuals of the loss", wrong)
    with pytest.raises(PrivacyError, match="NumPy must treat all rows"):
        check_exact_products()


@pytest.mark.parametrize(
    ("bounded", "holds"),
    [
        ([[2.0**20, 0.0], [0.0, 0.0]], True),
        ([[2.0**20 + 1, 0.0], [0.0, 0.0]], False),
        ([[1.0, 0.0], [0.0, 1.0]], False),
        ([[1.0, 0.0], [np.nan, 0.0]], False),
        ([[np.nan, 0.0], [0.0, 0.0]], False),
    ],
)
def test_bounds_hold_up_to_the_size_of_the_grid(plant, bounded, holds):
    plant(
        "clip that a device is tried with", lambda *_, **__: Clipped(np.array(bounded))
    )
    assert devices._bounds_hold() == holds


@pytest.mark.parametrize("private", [True, False])
def test_another_kind_of_device_is_refused(monkeypatch, private):
    devices.check_devices(private=private)
    monkeypatch.setattr(jax, "default_backend", lambda: "tpu")
    with pytest.raises(PrivacyError, match="got 'tpu'"):
        devices.check_devices(private=private)


def test_a_device_is_checked_once(plant):
    calls, gram = [], plant.genuine("product of rows with themselves")
    plant(
        "product of rows with themselves", lambda rows, _: calls.append(1) or gram(rows)
    )
    check_exact_products()
    check_exact_products()
    assert len(calls) == len(jax.local_devices())


@pytest.mark.slow
def test_one_wrong_device_of_eight_is_refused():
    """The last of eight virtual devices keeps 44 bits."""
    script = """
import jax, numpy as np
from privfeat.core.sums import devices, trials
from tests.planting import Plant
plant = Plant()
genuine = plant.genuine("products of rows with others")
def planted(rows, *rest):
    sums, scores = genuine(rows, *rest)
    return (np.round(sums / 64) * 64 if rows.device.id == 7 else sums), scores
devices.check_exact_products()
assert trials.products_are_exact.cache_info().currsize == 8
trials.products_are_exact.cache_clear()
plant("products of rows with others", planted)
devices.check_exact_products()
"""
    flags = "--xla_force_host_platform_device_count=8"
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert "PrivacyError: products must be exact" in done.stderr
    assert "not on cpu:7" in done.stderr or "TFRT_CPU_7" in done.stderr


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("jax_transfer_guard", "disallow"),
        ("jax_transfer_guard_host_to_device", "disallow_explicit"),
        ("jax_no_execution", True),
    ],
)
def test_what_keeps_jax_from_running_is_refused_before_the_charge(
    setting, value, tmp_path
):
    path = tmp_path / "ledger"
    ledger = PrivacyLedger(path, dataset="d", epsilon=3.0, delta=1e-5)
    clf = DPLeastSquares(classes=[0, 1], ledger=ledger)
    X, y = np.ones((4, 2)), [0, 1, 0, 1]
    clf.fit(X, y)  # what is tried once in a process has been tried
    before = getattr(jax.config, setting)
    jax.config.update(setting, value)
    try:
        with pytest.raises(PrivacyError, match="a setting refuses it"):
            clf.fit(X, y)
    finally:
        jax.config.update(setting, before)
    with (
        jax.transfer_guard_host_to_device("disallow"),  # of this thread
        pytest.raises(PrivacyError, match="a setting refuses it"),
    ):
        clf.fit(X, y)
    assert len(ledger.history) == 1


def test_no_noise_is_planned_where_bounds_do_not_hold(plant):
    """Networks as well, and flags that are gone from the variable, are refused."""
    plan = plan_releases([Query("a", 1.0)], epsilon=1.0)
    charged_mechanism(plan, KeyStream(1))
    plant("trial of the clip on this device", lambda: False)
    with pytest.raises(PrivacyError, match="XLA must compute as IEEE 754 says"):
        charged_mechanism(plan, KeyStream(1))


FORKED = """
import multiprocessing, sys
import numpy as np
from privfeat import DPLeastSquares, DPSGDClassifier, PrivacyLedger

X, y = np.eye(20), np.arange(20) % 2
ledger = PrivacyLedger(sys.argv[1], dataset="d", epsilon=9, delta=1e-5)

def fits(answers):
    model = DPSGDClassifier(model="mlp", expected_batch_size=4, n_iter=1, ledger=ledger)
    for one in (DPLeastSquares(classes=[0, 1], ledger=ledger), model):
        try:
            answers.put(one.fit(X, y).privacy_)
        except Exception as error:
            answers.put(str(error))

DPLeastSquares(classes=[0, 1], ledger=ledger).fit(X, y)
fork = multiprocessing.get_context("fork")
answers = fork.SimpleQueue()
child = fork.Process(target=fits, args=(answers,))
child.start()
print(answers.get(), answers.get(), len(ledger.history), sep="\\n")
child.join()
"""


@pytest.mark.slow
def test_a_fork_of_a_process_that_used_jax_charges_nothing(tmp_path):
    """The threads of JAX are missing there: a fit would wait for ever."""
    command = [sys.executable, "-W", "ignore", "-c", FORKED, str(tmp_path / "l")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    linear, network, charges = done.stdout.splitlines()
    assert "missing in the fork of a process that has used it" in linear
    assert network == linear
    assert charges == "1"


def test_a_device_that_fails_has_answered(monkeypatch):
    """A refusal is no wait for ever: the fit meets it, and says what it is."""

    def fail(function):
        raise RuntimeError

    monkeypatch.setattr(jax, "jit", fail)
    assert devices._answers.__wrapped__(0)
