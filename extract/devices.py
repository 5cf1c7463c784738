"""Where a network runs, at which precision, and with how many processes to decode."""

import os

import torch

from .errors import ExtractError


def find_device(name: str, local_rank: int) -> torch.device:
    """Return the device, and make a GPU the current one, where pinned memory is."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise ExtractError(
            f"--device must be available, but torch finds no GPU for {name!r}. "
            "Pass --device cpu."
        )
    try:
        device = torch.device(name)
        if device.type == "cuda":
            if device.index is None:
                device = torch.device("cuda", local_rank % torch.cuda.device_count())
            torch.cuda.set_device(device)
    except RuntimeError as error:
        raise ExtractError(
            f"--device must be auto, cpu, cuda or cuda:N, one of the "
            f"{torch.cuda.device_count()} GPUs, got {name!r}."
        ) from error
    return device


def kind_of(device: torch.device) -> list[str]:
    """Return what decides how a network rounds on this device."""
    if device.type == "cuda":
        return [torch.cuda.get_device_name(device), str(torch.version.cuda)]
    return [torch.backends.cpu.get_cpu_capability(), str(torch.get_num_threads())]


def default_workers(on_gpu: bool, local_count: int) -> int:
    """Decode in other processes, but not where the network needs every core itself."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    share = cpus // local_count
    return min(8, max(share, 1)) if on_gpu else min(8, share // 4)


def find_precision(name: str, device: torch.device) -> str:
    """Return the precision of the network; ``auto`` takes what the device does best."""
    if name != "auto":
        return name
    if device.type != "cuda":
        return "float32"
    return "bfloat16" if torch.cuda.is_bf16_supported() else "float16"
