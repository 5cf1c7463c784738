"""The command ``privfeat-extract``."""

import sys
import warnings
from collections.abc import Callable, Sequence

from privfeat._warnings import STDERR

from .arguments import parse
from .errors import ExtractError, say


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 0 if the feature file is there.

    1 after an error, which was told in one line on stderr; 130 if interrupted. Wrong
    arguments exit with 2.
    """
    arguments = sys.argv[1:] if argv is None else list(argv)
    if arguments[:1] == ["overlap"]:
        from .overlap import main as overlap

        return _reported(lambda: overlap(arguments[1:]))
    options = parse(arguments)
    from .run import extract

    return _reported(lambda: print(extract(options)))


def _reported(command: Callable[[], None]) -> int:
    """Run a command and tell in one line what the user can put right."""
    from privfeat.data import FeatureFileError

    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("always", module="privfeat")
            warnings.showwarning = _show_warning
            command()
    except (ExtractError, FeatureFileError) as error:
        return _fail(str(error))
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        return _fail(f"{error.strerror or error}{where}")
    except KeyboardInterrupt:
        STDERR.write("\n")
        say("interrupted; run the same command again to continue")
        return 130
    return 0


def _show_warning(message: Warning | str, *place: object) -> None:
    say(f"warning: {message}")


def _fail(message: str) -> int:
    say(f"error: {message}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
