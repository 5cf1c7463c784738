"""What a device, or its settings, may not do to a product."""

import os
import subprocess
import sys
from itertools import product
from typing import NamedTuple

import jax
import numpy as np
import pytest

from privfeat import DPFC
from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.plan import Query
from privfeat.core.noise.gaussian_mechanism import GaussianMechanism
from privfeat.core.noise.keys import KeyStream
from privfeat.core.sums import devices, trials
from privfeat.core.sums.arithmetic import host
from privfeat.core.sums.devices import check_exact_products, check_settings
from privfeat.exceptions import PrivacyError


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
    unit = 2.0 ** (np.floor(np.log2(np.max(np.abs(found)))) - bits)
    return np.round(np.asarray(found) / unit) * unit


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


def test_the_numbers_are_as_large_as_a_fit_has_them():
    rows, narrow, coef = trials.hard_numbers()
    assert rows.size == 2**20
    assert np.max(np.abs(rows)) == np.max(np.abs(narrow)) == 2.0**20
    assert np.max(np.abs(narrow[:, 0] @ rows)) == 2.0**50 - 2.0**30
    assert np.max(np.abs(narrow[:, 1] @ rows)) == 2.0**50
    tall = trials.hard_rows(2**13)
    assert tall.size == 2**20
    assert tall[:, 0] @ tall[:, 0] == 2.0**53
    norms = np.linalg.norm(coef, axis=1)
    assert 2.0**31 < np.max(norms) <= 2.0**32
    assert np.max(np.abs(rows // 32)) == 2.0**15


def test_the_numbers_are_as_large_as_an_accelerator_has_them(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    rows, narrow, coef = trials.hard_numbers()
    assert rows.shape == (2**13, 2**7)
    assert np.max(np.abs(narrow[:, 1] @ rows)) == 2.0**53
    assert np.all(narrow[:, 0] % 2 == 1)
    norms = np.linalg.norm(coef, axis=1)
    assert 2.0**31 < np.max(norms) <= 2.0**32
    assert np.max(np.abs(coef)) == 2.0**32 - 1.0
    assert np.max(np.abs(rows // 32)) == 2.0**15


def test_the_numbers_are_hard_to_multiply():
    """No zeros, 20 odd bits beside records of 1, and both signs alike often."""
    rows, _, coef = trials.hard_numbers()
    assert set(np.abs(rows[:, 0])) == {2.0**20}
    assert set(np.abs(rows[:, 1])) == {2.0**20 - 1.0}
    assert np.all(rows[:, 1:] % 2 == 1)
    assert set(np.abs(rows[1::2, 2:]).ravel()) == {1.0}
    assert np.median(np.abs(rows[::2, 2:])) > 2.0**18
    assert set(np.abs(coef[1])) == {2.0**27}
    assert set(np.abs(coef[2])) == {0.0, 2.0**32 - 1.0}
    others = coef[[0, *range(3, len(coef))]]
    assert np.all(others % 2 == 1)
    assert np.median(np.abs(others)) > 0.9 * 2.0**26
    assert len(np.unique(np.abs(others))) > 0.99 * others.size
    assert len(np.unique(np.abs(rows[::2, 2:]))) > 2**18
    for numbers in (rows[::2], rows[1::2], coef[1], *others):
        assert 0.45 < np.mean(numbers < 0) < 0.55


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
    "name",
    [
        "CUBLAS_EMULATE_DOUBLE_PRECISION",
        "CUBLAS_EMULATE_SINGLE_PRECISION",
        "CUBLAS_EMULATION_STRATEGY",
        "CUBLAS_EMULATION_SPECIAL_VALUES_SUPPORT_MASK",
        "CUBLAS_FIXEDPOINT_EMULATION_MANTISSA_BIT_COUNT",
        "NVIDIA_TF32_OVERRIDE",
    ],
)
def test_variables_of_cublas_are_refused_on_gpus(monkeypatch, name):
    monkeypatch.setenv(name, "1")
    check_settings()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    with pytest.raises(PrivacyError, match=f"changes by {name}"):
        check_settings()
    monkeypatch.setenv(name, "0")
    check_settings()


@pytest.mark.parametrize(
    ("flags", "refused"),
    [
        ("--xla_gpu_enable_fast_math --a=b", "xla_gpu_enable_fast_math"),
        ("--xla_cpu_enable_fast_math=true", "xla_cpu_enable_fast_math"),
        ("--xla_gpu_enable_bf16_3way_gemm=true", "xla_gpu_enable_bf16_3way_gemm"),
        ("--xla_gpu_enable_fast_min_max=true", "xla_gpu_enable_fast_min_max"),
        (
            "--xla_gpu_default_to_alg_dot_bf16_bf16_f32=true",
            "xla_gpu_default_to_alg_dot_bf16_bf16_f32",
        ),
        ("--xla_cpu_enable_fast_math=false", None),
        ("--xla_gpu_enable_fast_min_max=false", None),
        ("--xla_force_host_platform_device_count=8", None),
    ],
)
def test_flags_of_xla_that_shorten_products_are_refused(monkeypatch, flags, refused):
    monkeypatch.setenv("XLA_FLAGS", flags)
    if refused is None:
        check_settings()
        return
    with pytest.raises(PrivacyError, match=f"changes by {refused}[.]"):
        check_settings()


def test_flags_in_a_file_are_refused_as_well(monkeypatch, tmp_path):
    """XLA takes a variable that does not start with a dash for the name of a file."""
    file = tmp_path / "flags"
    file.write_text("--xla_cpu_enable_fast_math=false\n")
    monkeypatch.setenv("XLA_FLAGS", str(file))
    check_settings()
    file.write_text("--a=b\n--xla_cpu_enable_fast_math=true\n")
    with pytest.raises(PrivacyError, match=r"changes by xla_cpu_enable_fast_math\."):
        check_settings()
    file.unlink()
    with pytest.raises(PrivacyError, match="XLA_FLAGS must hold flags, or name a file"):
        check_settings()


def test_no_noise_is_planned_where_bounds_do_not_hold(plant):
    """Networks as well, and flags that are gone from the variable, are refused."""
    plan = plan_releases([Query("a", 1.0)], epsilon=1.0)
    GaussianMechanism(plan, KeyStream(1))
    plant("trial of the clip on this device", lambda: False)
    with pytest.raises(PrivacyError, match="XLA must compute as IEEE 754 says"):
        GaussianMechanism(plan, KeyStream(1))
