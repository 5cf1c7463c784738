"""The runs of a charged fit: one after another, each from the newest checkpoint.

A fit that is interrupted may go on for the charge that it had. A copy of its folder
must not go on as well, nor an older state of it: noise would be drawn for the same
steps twice. So every checkpoint has a **token**, a random name, and the ledger keeps
that of the newest one.

**Why one charge pays for one fit.** A run writes a checkpoint while it holds the lock
of the ledger, and only if the token there is that of its own last checkpoint; then the
ledger takes the new token. What a run draws between its checkpoints stays in its
process until the next one is written. So of several runs that started from one
checkpoint the first to write another goes on, and all others end without a release.

- Killed before the checkpoint is written, or it fails: the ledger and the folder have
  the old token, and the fit goes on.
- Killed between checkpoint and ledger: the checkpoint has its own token and the one
  that it replaces, which the ledger still has, and the fit goes on. Only here, and only
  for the steps of that one checkpoint, can a copy of the folder that has the checkpoint
  before be gone on with instead: its owner must throw the other away.
"""

import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from privfeat.core.ledger import rows as rows
from privfeat.core.ledger.privacy_ledger import PrivacyLedger
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.exceptions import PrivacyError

Tokens = Collection[str | None]  # None is that of a fit without a checkpoint


def check_running(
    ledger: PrivacyLedger,
    number: int,
    tokens: Tokens,
    *,
    statement: PrivacyStatement,
    estimator: str,
) -> None:
    """Raise PrivacyError unless this fit may go on from a checkpoint.

    Parameters
    ----------
    ledger : PrivacyLedger
    number : int
        Of its charge.
    tokens : collection of str or None
        Of the checkpoint.
    statement, estimator
        What was charged.
    """
    charge = {charge.number: charge for charge in ledger.history}.get(number)
    if charge is None or (charge.estimator, charge.statement) != (estimator, statement):
        raise PrivacyError(
            f"charge {number} of {ledger.budget.dataset!r} must be that of the "
            "interrupted fit, got another. Start the fit anew."
        )
    _check_newest(ledger, charge, tokens)


@contextmanager
def newest_checkpoint(
    ledger: PrivacyLedger, number: int, tokens: Tokens
) -> Iterator[list[str | None]]:
    """Let the body write the newest checkpoint of a charged fit, and no other run.

    Yields the tokens of the new checkpoint. If the body fails nothing has changed.

    Raises
    ------
    PrivacyError
        If another run has gone on with the fit, from one of its checkpoints before.
    LedgerError
        If the ledger cannot be read and written.
    """
    with ledger._store.transaction(write=True) as found:
        charge = rows.find_charges(found, ledger.budget)[number - 1]
        _check_newest(ledger, charge, tokens)
        token = uuid.uuid4().hex
        rows.mark_fitted(found, ledger.budget, number, token)
        yield [token, charge.token]


def _check_newest(ledger: PrivacyLedger, charge: rows.Charge, tokens: Tokens) -> None:
    name = f"charge {charge.number} of {ledger.budget.dataset!r}"
    if charge.fitted is not None:
        raise PrivacyError(
            f"{name} must be of a fit that was interrupted, got one that is finished: "
            "to go on would be a second fit. Start it anew."
        )
    if charge.token not in tokens:
        raise PrivacyError(
            f"{name} must be of a fit that goes on from its newest checkpoint, got an "
            "older one: another run, of a copy of checkpoint_dir, has gone on. Use the "
            "folder of that run, or start anew in an empty one."
        )
