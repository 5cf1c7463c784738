"""The parts of ``gpu.py``, each in a process of its own.

    python _gpu_parts.py PART [toy]

prints JSON: ``rows`` for the table (quantity, measured, bar, met) and the figures.
"""

import json
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
IMAGENET = (1_281_167, 1_664, 1_000)
# TFLOP/s of float64 and TOP/s of int8, dense, by the data sheets of the vendor.
PEAKS = {
    "H200": (67.0, 1979.0),
    "H100": (67.0, 1979.0),
    "A100": (19.5, 624.0),
    "L40S": (1.4, 733.0),
    "L4": (0.47, 242.0),
    "A10": (0.49, 250.0),
    "T4": (0.25, 130.0),
}
DPFC_BAR, IMAGES_BAR = 5.0, 5000.0


def row(quantity: str, measured: str, bar: str = "-", met: bool | None = None) -> Any:
    """Return a row of the table."""
    return [quantity, measured, bar, "-" if met is None else "yes" if met else "no"]


def find_device(toy: bool) -> dict[str, Any]:
    """Return the first device of JAX, and what torch sees."""
    import jax

    try:
        torch_version = version("torch")
    except PackageNotFoundError:
        torch_version = "not installed"
    first = jax.devices()[0]
    return {
        "device": str(getattr(first, "device_kind", first)),
        "backend": jax.default_backend(),
        "jax": jax.__version__,
        "torch": torch_version,
    }


def compare_sums(toy: bool) -> dict[str, Any]:
    """Compare digests of exact sums with those of a process on the CPU."""
    from _gpu_sums import digests
    from _processes import run_fresh

    n_rows = 1500 if toy else 20_000
    on_cpu = {"JAX_PLATFORMS": "cpu"}
    expected = run_fresh(HERE / "_gpu_sums.py", [n_rows], environment=on_cpu)
    rows, found = [], {"cpu": expected}
    for name, sliced in (("float64", False), ("int8", True)):
        found[name] = digests(n_rows, sliced)
        same = [key for key in expected if found[name][key] == expected[key]]
        # exp of float32 is another function on another device
        needed = [key for key in expected if not key.startswith("softmax")]
        met = set(needed) <= set(same)
        count = f"{sum(key in same for key in needed)} of {len(needed)}"
        rows.append(row(f"sums by {name} equal to the CPU's", count, "all", met))
    same = found["int8"] == found["float64"]
    rows.append(row("int8 equal to float64, softmax too", str(same), "True", same))
    return {"rows": rows, "digests": found}


def measure_rates(toy: bool) -> dict[str, Any]:
    """Time large products of float64 and of int8, and exact products by either."""
    import jax
    import jax.numpy as jnp

    from privfeat.core.sums.arithmetic.slices import (
        digit_sums,
        measured_rates,
        uses_slices,
    )

    size, device = (512 if toy else 8192), jax.devices()[0]
    rows, rates = [], {}
    peaks = next((p for n, p in PEAKS.items() if n in str(device.device_kind)), None)
    with jax.enable_x64(True):
        for place, (name, dtype, product) in enumerate(
            (
                ("float64", jnp.float64, partial(jnp.matmul, precision="highest")),
                ("int8", jnp.int8, digit_sums),
            )
        ):
            a = (jnp.arange(size * size) % 61 - 30).reshape(size, size).astype(dtype)
            seconds = least_seconds(partial(jax.jit(product), a, a), 5)
            rates[name] = 2.0 * size**3 / seconds
            measured = f"{rates[name] / 1e12:.2f} Top/s"
            if peaks:
                measured += f", {rates[name] / 1e12 / peaks[place]:.0%} of the peak"
            rows.append(row(f"{name} products of {size} x {size}", measured))
    shape = (256, 64, 8) if toy else (2**13, *IMAGENET[1:])
    exact = measured_rates(device, shape)
    for name, rate in exact.items():
        quantity = f"exact products by {name}, n={shape[0]}, d={shape[1]}, m={shape[2]}"
        rows.append(row(quantity, f"{rate / 1e12:.3f} Top/s"))
    rows.append(row("fits use", "int8 slices" if uses_slices() else "float64"))
    return {"rows": rows, "rates": rates, "exact": exact}


def fit_dpfc(toy: bool) -> dict[str, Any]:
    """Fit DPFC, the default steps, on features of ImageNet's size in memory."""
    import numpy as np

    from privfeat import DPFC

    n, d, m = (20_000, 64, 10) if toy else IMAGENET
    rng = np.random.default_rng(0)
    # random rows, again and again: time does not depend on what they are
    base = rng.standard_normal((min(n, 2**16), d), np.float32)
    X = np.resize(base, (n, d))
    y = rng.integers(0, m, n)
    clf = DPFC(epsilon=1.0, classes=range(m))
    clf.fit(X[:2000], y[:2000])  # compiles what every number of rows runs
    seconds = least_seconds(lambda: clf.fit(X, y), 1)
    steps = int(clf.n_iter_)
    operations = 2.0 * n * d * (d + 2 * m * steps)
    quantity = f"fit, n={n}, d={d}, m={m}, {steps} steps"
    rate = f"{operations / seconds / 1e12:.2f} Top/s"
    met = None if toy else seconds <= DPFC_BAR
    rows = [row(quantity, f"{seconds:.2f} s, {rate}", f"{DPFC_BAR:g} s", met)]
    return {"rows": rows, "seconds": seconds, "steps": steps, "sizes": [n, d, m]}


def extract_images(toy: bool) -> dict[str, Any]:
    """Time the network on decoded images, and apart from it the decoding."""
    import importlib.util
    import tempfile

    if importlib.util.find_spec("privfeat_extract") is None:
        add_extract()
    import torch
    from extraction import save_images

    from privfeat_extract.arguments import Network, Options
    from privfeat_extract.folder import open_folder
    from privfeat_extract.loading import Batch, load_batches
    from privfeat_extract.network import NetworkExtractor

    model, side = ("test_resnet", 32) if toy else ("vit_base_patch16_224", 224)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = Options(
            data=str(folder),
            out=folder / "out.h5",
            networks=(Network(model, pretrained=False),),
            resize=side + side // 4,
            crop=side,
            batch_size=2 if toy else None,
            precision="bfloat16",
            compile=not toy,
        )
        extractor, n_batches = NetworkExtractor(made), 2 if toy else 60
        size = extractor.batch_size
        pixels = torch.randint(0, 256, (size, 3, side, side), dtype=torch.uint8)
        pixels = pixels.contiguous(memory_format=torch.channels_last)[None]
        batch = Batch(pixels, None)
        batch = batch.pin_memory() if extractor.device.type == "cuda" else batch
        how = "compiled" if made.compile else "as it is"
        try:
            extractor._start(batch).collect()
        except Exception as error:  # noqa: BLE001 - without a compiler, say
            how = f"not compiled ({type(error).__name__})"
            extractor = NetworkExtractor(replace(made, compile=False))

        def forward() -> None:
            waiting = extractor._start(batch)
            for _ in range(n_batches - 1):
                started = extractor._start(batch)
                waiting.collect()
                waiting = started
            waiting.collect()

        rate = size * n_batches / least_seconds(forward, 3)
        count = 8 if toy else 2048
        save_images(folder, count, side)
        images = open_folder(folder, ["train"], made.out).splits["train"]
        loader = partial(
            load_batches, images, extractor.transform, start=0, stop=len(images)
        )
        started = time.perf_counter()
        for _ in loader(batch_size=size, workers=extractor.workers, pin=False):
            pass
        loaded = count / (time.perf_counter() - started)
    met = None if toy else rate >= IMAGES_BAR
    quantity = f"{model}, bf16, {how}, decoded images, batch {size}"
    rows = [
        row(quantity, f"{rate:.0f} images/s", f"{IMAGES_BAR:.0f} images/s", met),
        row(f"decoding by {extractor.workers} workers", f"{loaded:.0f} images/s"),
    ]
    return {"rows": rows, "images_per_second": rate, "loaded_per_second": loaded}


def add_extract() -> None:
    """Make the folder ``extract`` importable where the package is not installed."""
    import importlib.util

    folder = HERE.parent / "extract"
    spec = importlib.util.spec_from_file_location(
        "privfeat_extract",
        folder / "__init__.py",
        submodule_search_locations=[str(folder)],
    )
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError("No module named 'privfeat_extract'")
    module = importlib.util.module_from_spec(spec)
    sys.modules["privfeat_extract"] = module
    spec.loader.exec_module(module)


def step_network(
    toy: bool, *, name: str, batch: int, copies: int, part: int
) -> dict[str, Any]:
    """Time a step of DP-SGD beside one without privacy in the same parts."""
    from _dpsgd_steps import make_step

    shape = (32, 32, 3)
    if toy:
        name, batch, part = ("sample_convnet" if copies > 1 else "mlp"), 16, 8
        shape = (28, 28, 1)
    seconds: dict[str, float] = {}
    for engine in ("in parts", "fast"):
        step, _ = make_step(name, shape, batch, part, engine, copies)
        seconds[engine] = least_seconds(step, 3)
    ratio = seconds["fast"] / seconds["in parts"]
    quantity = f"{name}, batch {batch} x {copies}: a private step over one without"
    measured = f"{ratio:.2f} ({seconds['fast']:.3f} s over {seconds['in parts']:.3f} s)"
    return {"rows": [row(quantity, measured)], "seconds": seconds}


def replay_fits(toy: bool) -> dict[str, Any]:
    """Fit neighbours with the same releases: sums move by what is declared, or less."""
    import numpy as np

    import privfeat
    from privfeat.audit import replay

    rng = np.random.default_rng(0)
    n = 300 if toy else 20_000
    X, y = rng.normal(size=(n, 32)), rng.integers(0, 5, n)
    rows, ratios = [], {}
    for name in ("DPFC", "DPLeastSquares") if toy else privfeat.linear.__all__[:4]:
        clf = getattr(privfeat, name)(epsilon=1.0, classes=range(5))
        result = replay(clf, X, y, record=n - 1)
        ratios[name] = max(movement.ratio for movement in result.movements)
        measured = f"{ratios[name]:.4f} of the declared"
        rows.append(row(f"{name}: sums move by", measured, "1", result.ok))
    return {"rows": rows, "ratios": ratios}


def least_seconds(run: Callable[[], Any], repeats: int) -> float:
    """Return the least seconds of several runs, after one more if there are several."""
    seconds = []
    for _ in range(repeats + (repeats > 1)):
        started = time.perf_counter()
        done = run()
        if hasattr(done, "block_until_ready"):
            done.block_until_ready()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


WRN = {"name": "wrn_16_4", "batch": 4096, "copies": 3, "part": 256}
RESNET = {"name": "resnet18", "batch": 1024, "copies": 1, "part": 256}
PARTS: dict[str, Callable[[bool], dict[str, Any]]] = {
    "device": find_device,
    "equality": compare_sums,
    "rates": measure_rates,
    "DPFC": fit_dpfc,
    "extraction": extract_images,
    "WRN-16-4": partial(step_network, **WRN),
    "ResNet-18": partial(step_network, **RESNET),
    "replay": replay_fits,
}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(PARTS[sys.argv[1]]("toy" in sys.argv[2:])))
