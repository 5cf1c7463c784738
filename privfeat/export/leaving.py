"""What is told before numbers leave that no privacy statement covers."""

from privfeat._warnings import warn
from privfeat.core.statement.privacy_statement import PrivacyStatement


def warn_of_exposed(what: str, statement: PrivacyStatement) -> None:
    """Warn of what leaves whose statement has no finite epsilon, or noise of a seed.

    ``what`` has its article, such as "a model".
    """
    if not statement.private:
        warn(
            f"{what} that leaves should have a finite epsilon and no random_state, got "
            f"epsilon={statement.epsilon!r}, seeded={statement.seeded!r}. Let it leave "
            "only if its records are public."
        )
