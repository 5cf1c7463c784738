"""A PostgreSQL server of the tests' own, in a temporary folder, on a Unix socket."""

import glob
import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path


def find_program(name):
    """Return the path of a server program; Debian keeps them off the path."""
    found = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"))
    return found[-1] if found else shutil.which(name)


@contextmanager
def postgres_server():
    """Yield the URL of a fresh database; the server ends with the context."""
    # PostgreSQL refuses to run as root.
    user = "postgres" if os.getuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="privfeat-pg-"))
    if user is not None:
        os.chown(folder, pwd.getpwnam(user).pw_uid, -1)

    def run(name, *arguments):
        subprocess.run(
            [find_program(name), *arguments],
            user=user,
            cwd=folder,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    data = str(folder / "data")
    run("initdb", "-D", data, "-U", "tester", "--auth=trust", "--no-sync")
    options = f"-k {folder} -c listen_addresses='' -c synchronous_commit=off"
    run("pg_ctl", "-D", data, "-o", options, "-l", str(folder / "log"), "-w", "start")
    try:
        yield f"postgresql://tester@/postgres?host={folder}"
    finally:
        run("pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
        shutil.rmtree(folder)
