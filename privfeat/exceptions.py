"""Errors and warnings that a user of privfeat may want to catch."""


class PrivacyError(Exception):
    """A privacy promise cannot be made or kept; nothing was released."""


class BudgetExceededError(PrivacyError):
    """A release would cost more than what is left of a budget."""


class LedgerError(PrivacyError):
    """A ledger is missing, damaged, or cannot be read or written."""


class UnsupportedEventError(PrivacyError):
    """The chosen accounting has no valid bound for what the fit would do."""


class PrivacyWarning(UserWarning):
    """A legal choice that weakens privacy, such as a fixed seed."""
