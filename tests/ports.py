"""A port that no other program takes between finding it and using it."""

import socket
from contextlib import contextmanager


@contextmanager
def held_port():
    """Yield a free port of localhost, on which JAX's coordinator can still listen.

    The port stays bound here, so the system gives it to nobody who asks for any port;
    the coordinator shares it, as both set SO_REUSEPORT.
    """
    with socket.socket() as holder:
        if hasattr(socket, "SO_REUSEPORT"):
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holder.bind(("localhost", 0))
        port = holder.getsockname()[1]
        if not hasattr(socket, "SO_REUSEPORT"):
            holder.close()
        yield port
