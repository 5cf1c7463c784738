"""Whether the file of a ledger is on a disk of this machine alone."""

import os
import re
import warnings

from privfeat.exceptions import PrivacyWarning

_MOUNTS = "/proc/self/mountinfo"  # of Linux; elsewhere nobody is warned
# Of networks, of virtual machines that share folders, and of programs.
_SHARED = re.compile(
    r"nfs\d?|cifs|smb\w*|lustre|gpfs|beegfs|ceph|k?afs|glusterfs|pvfs2|panfs|wekafs|"
    r"9p|virtiofs|vboxsf|vmhgfs|prl_fs|drvfs|fuse|fuse\..*"
)


def warn_of_shared_disk(path: str) -> None:
    """Warn if another host, or another mount, could have the locks of a file apart."""
    kind = _kind_of_disk(path)
    if kind is not None and _SHARED.fullmatch(kind):
        warnings.warn(
            "path should be on a disk of this machine, got a file system of type "
            f"{kind!r}: hosts that share it may not see each other's locks, and a "
            "charge could be lost. Charge from one host alone, or give the URL of a "
            "PostgreSQL database.",
            PrivacyWarning,
            stacklevel=4,
        )


def _kind_of_disk(path: str) -> str | None:
    """Return the type of the file system of a file, or of the folder that it is for."""
    try:
        where = path if os.path.exists(path) else os.path.dirname(path)
        device = os.stat(where).st_dev
        wanted = f"{os.major(device)}:{os.minor(device)}"
        with open(_MOUNTS, encoding="utf-8", errors="replace") as mounts:
            for fields in map(str.split, mounts):
                if fields[2] == wanted:
                    return fields[fields.index("-", 6) + 1]
    except (OSError, IndexError, ValueError):  # not there, or not as Linux writes it
        pass
    return None
