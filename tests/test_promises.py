"""What the last major version promised is still there: names, parameters, defaults.

``python -m tests.test_promises`` writes the promise anew: for a new major version, for
names that a minor version adds, and for a default that docs/promises.md lets change.
"""

import inspect
import json
import re
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROMISE = ROOT / "tests" / "golden" / "public_names.json"


def public():
    """Return the parameters and defaults of each object of the reference, by path."""
    found = {}
    for page in sorted((ROOT / "docs" / "reference").glob("*.md")):
        for path in re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE):
            module, _, name = path.rpartition(".")
            if module.endswith(f".{name}"):  # a function beside its module's name
                path = module
            found[path] = parameters_of(getattr(import_module(module), name))
    return found


def parameters_of(thing):
    """Return its parameters with their defaults, as text; none if it takes none.

    A value that users read and do not make has fields.
    """
    made = getattr(thing, "__dataclass_params__", None)
    if made is not None and made.frozen:
        return dict.fromkeys(thing.__dataclass_fields__, "field")
    if isinstance(thing, type) and issubclass(thing, BaseException | Warning):
        return {}
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return {}
    return {
        name: "required" if given.default is given.empty else text_of(given.default)
        for name, given in signature.parameters.items()
    }


def text_of(default):
    """Return a default as text, without the address of a function."""
    return re.sub(r" at 0x\w+", "", repr(default))


def broken(promised, here):
    """Return what was promised and is gone, or has another default, or is required."""
    lines = []
    for path, parameters in promised.items():
        if path not in here:
            lines.append(f"{path} is gone")
            continue
        for name, default in parameters.items():
            if name not in here[path]:
                lines.append(f"{path}({name}=) is gone")
            elif here[path][name] != default:
                lines.append(f"{path}({name}=) was {default}: {here[path][name]}")
        for name in here[path].keys() - parameters.keys():
            if here[path][name] == "required" and name not in {"args", "kwargs"}:
                lines.append(f"{path}({name}=) is new and required")
    return lines


def test_promised_names_are_there():
    promised = json.loads(PROMISE.read_text(encoding="utf-8"))
    assert broken(promised, public()) == []


def test_a_broken_promise_is_found():
    promised = {"a": {"x": "1"}, "b": {"y": "None"}, "c": {}}
    here = {"b": {"y": "2"}, "c": {"z": "required"}}
    assert broken(promised, here) == [
        "a is gone",
        "b(y=) was None: 2",
        "c(z=) is new and required",
    ]
    assert broken({"a": {"x": "1"}}, {"a": {}}) == ["a(x=) is gone"]


if __name__ == "__main__":
    text = json.dumps(public(), indent=1, sort_keys=True, ensure_ascii=False)
    PROMISE.write_text(text + "\n", encoding="utf-8")
