"""What an accelerator does: is it exact, and how fast? At most ten minutes.

    make gpu                                      # the same, into results/gpu.json
    python benchmarks/gpu.py --out gpu.json
    python benchmarks/gpu.py --toy                # tiny sizes, on any device

One process after another: exact sums against those of the CPU, bit for bit; rates of
float64 and of 8-bit products; a fit of DPFC on features of ImageNet's size; extraction
with a ViT-B/16; steps of DP-SGD over steps without privacy; an audit by replay. A part
that fails, or for which a package is missing, says so in its row, and the others go on:
nothing is installed. What is missing may lie, unpacked, in a folder of PYTHONPATH. The
file of ``--out`` is written after every part.

This file and those that it imports need the standard library alone.
"""

import argparse
import time
from pathlib import Path
from typing import Any

from _processes import Failed, run_fresh
from _results import keep_tables, markdown_table, write_json

PARTS = Path(__file__).with_name("_gpu_parts.py")
# Seconds that each part may take, in this order; together with MINUTES a cap.
LIMITS = {
    "equality": 75,
    "rates": 60,
    "DPFC": 150,
    "extraction": 150,
    "WRN-16-4": 130,
    "ResNet-18": 90,
    "replay": 75,
}
MINUTES = 9.5
HEADER = ["part", "quantity", "measured", "bar", "met"]


def main() -> None:
    """Run the parts, and print one table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--toy", action="store_true", help="tiny sizes, on any device")
    parser.add_argument("--only", nargs="+", choices=list(LIMITS), default=list(LIMITS))
    parser.add_argument("--out", type=Path, help="JSON file")
    args = parser.parse_args()
    ends = time.monotonic() + 60 * MINUTES
    try:
        device = run_fresh(PARTS, ["device"], limit=90)
    except Failed as error:
        raise SystemExit(f"JAX must find a device, and did not: {error}") from error
    print(f"{device['device']}, jax {device['jax']}, torch: {device['torch']}")
    if device["backend"] == "cpu" and not args.toy:
        raise SystemExit("JAX must find an accelerator, found a CPU. Pass --toy.")
    results: dict[str, Any] = {"accelerator": device, "toy": args.toy, "parts": {}}
    rows: list[list[str]] = []
    for part in args.only:
        started = time.monotonic()
        # a CPU that does other work takes its time
        limit = min(LIMITS[part] * (4 if args.toy else 1), ends - started)
        found = run_part(part, args.toy, limit)
        found["seconds of the part"] = time.monotonic() - started
        results["parts"][part] = found
        rows += [[part, *row] for row in found["rows"]]
        print(*(" | ".join([part, *row]) for row in found["rows"]), sep="\n")
        print(f"  {found['seconds of the part']:.0f} s", flush=True)
        if args.out:
            write_json(args.out, results)
    print(f"\n{markdown_table(HEADER, rows, 'gpu')}")
    keep_tables(args.out)


def run_part(part: str, toy: bool, limit: float) -> dict[str, Any]:
    """Return what a part found, or a row that says why it found nothing."""
    try:
        if limit <= 0:
            raise Failed(f"no time was left of {MINUTES:g} minutes")
        return run_fresh(PARTS, [part, *(["toy"] if toy else [])], limit=limit)
    except Failed as error:
        return {"rows": [[f"not measured: {error}", "-", "-", "no"]]}


if __name__ == "__main__":
    main()
