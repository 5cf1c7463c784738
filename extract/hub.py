"""Whether published weights can be fetched, asked once and answered in seconds."""

import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

TIMEOUT_SECONDS = 5.0


@contextmanager
def quick_to_fail() -> Iterator[bool]:
    """Let the hub's client take what is on disk if its server does not answer.

    By itself it tries every file six times, a minute in all, before it says so. Yields
    whether the server, or the proxy on the way to it, answers.
    """
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE or answers(constants.ENDPOINT):
        yield not constants.HF_HUB_OFFLINE
        return
    constants.HF_HUB_OFFLINE = True
    try:
        yield False
    finally:
        constants.HF_HUB_OFFLINE = False


def answers(url: str, timeout: float = TIMEOUT_SECONDS) -> bool:
    """Whether a server answers at all, within ``timeout`` seconds, name look-up too."""
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(_ask(url, timeout)))
    thread.daemon = True  # a look-up of a name cannot be stopped
    thread.start()
    thread.join(timeout)
    return bool(found and found[0])


def _ask(url: str, timeout: float) -> bool:
    """Return whether a server answers at ``url`` within ``timeout`` seconds."""
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, method="HEAD"), timeout=timeout
        ):
            return True
    except urllib.error.HTTPError:
        return True
    except (OSError, ValueError) as error:
        # The client may trust certificates that Python does not.
        return isinstance(getattr(error, "reason", error), ssl.SSLError)
