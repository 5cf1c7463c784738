"""``privfeat doctor``: say what is installed here, and what computes exactly.

Print versions, which extras are complete and can be imported, whether the devices
compute as the proofs of sums suppose, and where compiled code is kept. No data is read.
It takes seconds. The exit status is 1 if no private fit could run. For example

    privfeat doctor
"""

import json
import os
import platform
import re
from argparse import Namespace
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from privfeat._version import __version__
from privfeat.cli.shared import options
from privfeat.cli.shared.terminal import CommandError

# Extras that fits, commands and reports do not need; devices answer for `gpu`.
_LEFT_OUT = {"browser", "dev", "docs", "gpu", "mutation"}
# By what name a package is imported, where it is another one.
_IMPORTED = {
    "mlflow-skinny": "mlflow",
    "orbax-checkpoint": "orbax.checkpoint",
    "pillow": "PIL",
}
_NAME, _EXTRA = re.compile(r"[\w.-]+"), re.compile(r"""extra\s*==\s*["']([\w.-]+)""")


def add_parser(verbs: Any) -> None:
    """Add this verb to the parser of the command."""
    options.verb(verbs, run, options.AS_JSON)


def run(args: Namespace) -> None:
    """Print what was found; an error if the devices cannot be used."""
    found = findings()
    print(json.dumps(found, indent=2) if args.json else "\n".join(in_words(found)))
    if found["devices"]["problem"] is not None:
        raise CommandError("no private fit can run here; see `devices` above.")


def findings() -> dict[str, Any]:
    """Return what is installed, and how the devices compute, as JSON has it."""
    packages, extras = installed()
    found = devices()  # before anything that another package may set
    used = {name for names in extras.values() for name in names}
    broken = {name: why for name in sorted(used) if (why := why_broken(name))}
    return {
        "privfeat": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "packages": packages,
        "extras": {
            extra: [name for name in names if packages[name] is None]
            for extra, names in extras.items()
        },
        "broken": broken,
        "devices": found,
        "compiled_code": compiled_code(),
    }


def installed() -> tuple[dict[str, str | None], dict[str, list[str]]]:
    """Return the version of each package, and which ones each extra needs."""
    packages: dict[str, str | None] = {}
    extras: dict[str, list[str]] = {}
    for line in metadata.requires("privfeat") or []:
        named, extra = _NAME.match(line), _EXTRA.search(line)
        if named is None or (extra and extra[1] in _LEFT_OUT):
            continue
        name = named[0]
        try:
            packages[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            packages[name] = None
        if extra:
            extras.setdefault(extra[1], []).append(name)
    return packages, extras


def why_broken(package: str) -> str | None:
    """Return why a package that is installed cannot be imported, None if it can.

    A torch and a torchvision of different builds, say, have versions that fit.
    """
    name = _IMPORTED.get(package, package.replace("-", "_"))
    try:
        import_module(name)
    except ModuleNotFoundError as error:
        if error.name in (name, name.partition(".")[0]):
            return None  # it is missing
        return str(error)
    except Exception as error:  # noqa: BLE001 - whatever it runs when it is imported
        return " ".join(str(error).split()) or type(error).__name__
    return None


def devices() -> dict[str, Any]:
    """Return the names of the devices, and what keeps fits from them, if anything."""
    import jax

    from privfeat.core.sums.devices import check_devices
    from privfeat.exceptions import PrivacyError

    try:
        names = [str(device) for device in jax.local_devices()]
        check_devices(private=True)
    except (PrivacyError, RuntimeError) as error:  # the latter is JAX's
        return {"names": [], "problem": str(error)}
    return {"names": names, "problem": None}


def compiled_code() -> dict[str, Any]:
    """Return where compiled code is kept, and how much of it there is."""
    from privfeat.estimation.fitting import VARIABLE, folder_of_compiled_code

    folder = folder_of_compiled_code()
    files = Path(folder).rglob("*") if folder else ()
    n_bytes = sum(file.stat().st_size for file in files if file.is_file())
    return {"folder": folder, "bytes": n_bytes, "variable": VARIABLE}


def in_words(found: dict[str, Any]) -> list[str]:
    """Return the lines that a person reads."""
    lines = [
        f"privfeat {found['privfeat']}, Python {found['python']}, "
        f"{found['platform']}, {found['cores']} cores",
        "",
        "packages",
        *(f"  {name} {have or 'missing'}" for name, have in found["packages"].items()),
        "",
        "extras",
    ]
    needs = installed()[1]
    for extra, lacks in found["extras"].items():
        said = "ready"
        broken = [name for name in needs[extra] if name in found["broken"]]
        if broken:
            why = found["broken"][broken[0]]
            said = f"{broken[0]} is installed, but cannot be imported: {why}"
        if lacks:
            said = f"pip install 'privfeat[{extra}]' brings {', '.join(lacks)}"
        lines.append(f"  {extra}: {said}")
    problem, names = found["devices"]["problem"], found["devices"]["names"]
    kept = found["compiled_code"]
    where = f"{kept['folder']}, {kept['bytes'] / 1e6:.1f} MB"
    return [
        *lines,
        "",
        "devices",
        *([f"  {name}: computes exactly" for name in names] or [f"  {problem}"]),
        "",
        "compiled code",
        f"  {where if kept['folder'] else 'is not kept'} ({kept['variable']})",
    ]
