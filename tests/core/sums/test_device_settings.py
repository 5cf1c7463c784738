"""Settings of XLA and cuBLAS by which products would lose bits."""

from types import SimpleNamespace

import jax
import pytest

from privfeat.core.sums.devices import check_settings
from privfeat.exceptions import PrivacyError


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
        ("--xla_cpu_enable_fast_math=01", "xla_cpu_enable_fast_math"),
        ("--xla_cpu_enable_fast_math=0", None),
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


def test_no_noise_is_drawn_on_another_kind_of_device(monkeypatch):
    """Networks sum whole numbers anywhere; their noise needs float64."""
    monkeypatch.setattr(jax, "default_backend", lambda: "tpu")
    with pytest.raises(PrivacyError, match="got 'tpu'"):
        check_settings()


def test_devices_of_two_kinds_are_refused(monkeypatch):
    """One record more moves others to the next device, which rounds another way."""
    kinds = ["NVIDIA A100", "NVIDIA H200", "NVIDIA A100"]
    found = [SimpleNamespace(device_kind=kind) for kind in kinds]
    monkeypatch.setattr(jax, "local_devices", lambda: found)
    with pytest.raises(PrivacyError, match=r"\['NVIDIA A100', 'NVIDIA H200'\]. Show"):
        check_settings()
    monkeypatch.setattr(jax, "local_devices", lambda: found[::2])
    check_settings()
