"""The benchmarks are scripts: what they import lies beside them."""

import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path += [str(BENCHMARKS), str(BENCHMARKS / "figures")]

# They guard figures, not fits: slow, but for those that are quick.
QUICK = ("test_cells.py", "test_results.py", "test_processes.py")


def pytest_collection_modifyitems(items):
    """Leave the trials of the scripts to ``make test-slow``."""
    here = Path(__file__).parent
    for item in items:
        if item.path.parent == here and item.path.name not in QUICK:
            item.add_marker("slow")
