"""What was checked once must not change: dataclasses of the core are frozen."""

import dataclasses
import importlib
import pkgutil

from privfeat import core


def test_dataclasses_of_the_core_are_frozen():
    found = set()
    for info in pkgutil.walk_packages(core.__path__, "privfeat.core."):
        for value in vars(importlib.import_module(info.name)).values():
            if isinstance(value, type) and dataclasses.is_dataclass(value):
                found.add(value)
    assert len(found) > 15
    assert [each for each in found if not each.__dataclass_params__.frozen] == []
