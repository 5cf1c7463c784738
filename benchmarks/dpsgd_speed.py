"""What privacy costs in time and memory: one step of DP-SGD beside one without privacy.

    python benchmarks/dpsgd_speed.py --quick
    python benchmarks/dpsgd_speed.py --out speed.json

Every engine sums the gradients of the same batch of the same network. ``non-private``
takes the whole batch at once; ``in parts`` is the same work in the physical batches of
the fast engine, ``fast`` includes the noise. Times are the least of several runs,
interleaved; memory is what the compiler reserves for one call.

    python benchmarks/dpsgd_speed.py --compare --opacus-python peers-opacus/bin/python

compares instead, on the two networks of Table 1 of Kurakin et al. 2022, with
``vmap(grad)`` and with opacus (see ``peers.py`` for its environment): the least seconds
of a step with noise, each contender in a fresh process, and its peak of memory,
also above that of the interpreter with its imports.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from _dpsgd_contenders import JAX, SHAPES, TORCH
from _dpsgd_steps import make_step
from _processes import Failed, run_fresh
from _results import keep_tables, markdown_table, write_json

SIX_CONVOLUTIONS = "simpleVGG-32(2)-64(2)-128(2)-128"
# model, shape of an image, batch size, physical batch
SETTINGS: dict[str, tuple[tuple[int, int, int], int, int]] = {
    SIX_CONVOLUTIONS: ((32, 32, 3), 256, 32),
    "resnet18": ((32, 32, 3), 64, 16),
    "resnet50": ((32, 32, 3), 32, 16),
    "vit_tiny": ((32, 32, 3), 64, 16),
    "sample_convnet": ((28, 28, 1), 256, 32),
}
QUICK = {SIX_CONVOLUTIONS: ((32, 32, 3), 128, 16)}
ENGINES = ("non-private", "in parts", "fast", "reference")


def main() -> None:
    """Print one row per network; with ``--quick`` end with the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one network, a minute")
    parser.add_argument("--models", nargs="+", choices=list(SETTINGS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--compare", action="store_true", help="with vmap and opacus")
    parser.add_argument("--opacus-python", type=Path)
    parser.add_argument("--batch", type=int, default=256, help="of --compare")
    parser.add_argument("--out", type=Path, help="JSON file")
    args = parser.parse_args()
    if args.compare:
        compare(args)
        return
    settings = QUICK if args.quick else SETTINGS
    chosen = args.models or list(settings)
    engines = ENGINES[:3] if args.quick else ENGINES
    results, rows = {}, []
    for name in chosen:
        times, megabytes = measure(name, *settings[name], engines, args.repeats)
        results[name] = {"seconds": times, "megabytes": megabytes}
        rows.append([name, *(f"{times[engine]:.3f}" for engine in engines)])
        rows[-1].append(f"{times['fast'] / times['non-private']:.2f}")
        rows[-1] += [f"{megabytes[engine]:.0f}" for engine in engines]
    header = ["network", *(f"{engine}, s" for engine in engines), "fast / non-private"]
    header += [f"{engine}, MB" for engine in engines]
    print(markdown_table(header, rows, "steps"))
    if args.out:
        write_json(args.out, results)
    keep_tables(args.out)
    if args.quick:
        times = results[SIX_CONVOLUTIONS]["seconds"]
        print(f"fast / non-private: {times['fast'] / times['non-private']:.2f}")


def compare(args: argparse.Namespace) -> None:
    """Print one row for each contender and network, in processes of their own."""
    script = Path(__file__).with_name("_dpsgd_contenders.py")
    results: dict[str, dict[str, Any]] = {name: {} for name in SHAPES}
    rows = []
    for network, found in results.items():
        for name in (*JAX, *TORCH):
            python = sys.executable if name in JAX else args.opacus_python
            if python is None:
                found[name] = {"reason": "not run"}
            else:
                options = (name, network, args.batch, 32, args.repeats)
                try:
                    found[name] = run_fresh(script, options, python=python)
                except Failed as error:
                    found[name] = {"reason": f"failed, {error}"}
            rows.append([network, name, *cells(found[name])])
            if args.out:
                write_json(args.out, {"batch": args.batch, "contenders": results})
    header = ["network", "", "step, s", "memory, MiB", "above imports, MiB"]
    print(markdown_table(header, rows, "comparison"))
    keep_tables(args.out)


def cells(found: dict[str, Any]) -> list[str]:
    """Return the numbers of one contender, or why there are none."""
    if "seconds" not in found:
        return [found["reason"], "-", "-"]
    above = found["peak_mib"] - found["loaded_mib"]
    return [f"{found['seconds']:.3f}", f"{found['peak_mib']:.0f}", f"{above:.0f}"]


def measure(
    name: str,
    shape: tuple[int, int, int],
    batch: int,
    part: int,
    engines: tuple[str, ...],
    repeats: int,
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the least seconds of a step of every engine, and its megabytes."""
    made = {engine: make_step(name, shape, batch, part, engine) for engine in engines}
    steps = {engine: step for engine, (step, _) in made.items()}
    times: dict[str, list[float]] = {engine: [] for engine in engines}
    for step in steps.values():
        step()
    for _ in range(repeats):
        for engine, step in steps.items():
            start = time.perf_counter()
            step()
            times[engine].append(time.perf_counter() - start)
    least = {engine: min(values) for engine, values in times.items()}
    return least, {engine: megabytes for engine, (_, megabytes) in made.items()}


if __name__ == "__main__":
    main()
