"""Which of several runs goes on with a fit that was charged once.

A fit that was interrupted may go on under its charge. A copy of its folder, or an
older state of it, must not go on as well: noise would be drawn for the same steps
twice. So every checkpoint has a **token**, a random name, and the ledger keeps the
token of the newest one.

**Why one charge pays for one fit.** A run writes a checkpoint while it holds the lock
of the ledger, and only if the ledger has the token of the run's last checkpoint. Then
the ledger takes the new token. What a run draws between two checkpoints stays in its
process until the second is written, after the last draw as well. So of several runs
that started from one checkpoint the first to write another goes on, and all others end
without a release.

- Nor does a run finish with another token than the ledger has. Where that cannot be
  noted the fit is not lost: a fit with checkpoints writes one after its last draw
  (`networks/training/resuming`), so that no other run can. A fit that cannot write that
  one ends without a release, unless it has written none at all.
- A run that is killed, or fails, before the checkpoint is written: the ledger and the
  folder have the old token, and the fit goes on.
- A run that is killed between checkpoint and ledger: the checkpoint holds its own token
  and the one that it replaces, which the ledger still has, and the fit goes on. Here
  alone a copy of the folder with the checkpoint before could go on instead, and draw
  the steps of this one checkpoint again: the owner must throw one of the two away.
"""

import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from privfeat.core.ledger import rows
from privfeat.core.ledger.privacy_ledger import PrivacyLedger
from privfeat.core.ledger.store import Transaction, damaged
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
) -> str | None:
    """Return the name of charge ``number``; PrivacyError unless its fit may go on.

    The charge must be of ``statement`` and ``estimator``, and the ``tokens`` those of
    its newest checkpoint.
    """
    charge = {charge.number: charge for charge in ledger.history}.get(number)
    if charge is None or (charge.estimator, charge.statement) != (estimator, statement):
        raise PrivacyError(
            f"charge {number} of {ledger.budget.dataset!r} must be that of the "
            "interrupted fit, got another, or none: was the ledger put back from a "
            "copy? Then charge what it lacks, and start the fit anew."
        )
    _check_newest(ledger, charge, tokens)
    return charge.statement.charge


@contextmanager
def newest_checkpoint(
    ledger: PrivacyLedger, number: int, tokens: Tokens
) -> Iterator[list[str | None]]:
    """Let the body write the newest checkpoint of a charged fit, and no other run.

    Yields the tokens of the new checkpoint. If the body fails nothing has changed. It
    is a PrivacyError if another run has gone on from one of the checkpoints before.
    """
    with ledger._store.transaction(write=True) as found:
        charge = _newest(found, ledger, number, tokens)
        token = uuid.uuid4().hex
        rows.mark_fitted(found, ledger.budget, number, token)
        yield [token, charge.token]


def finish(ledger: PrivacyLedger, number: int, tokens: Tokens) -> None:
    """Note that a charged fit is finished; what it costs does not change.

    It is a PrivacyError unless the ``tokens`` are those of its newest checkpoint.
    """
    with ledger._store.transaction(write=True) as found:
        _newest(found, ledger, number, tokens)
        rows.mark_fitted(found, ledger.budget, number)


def _newest(
    found: Transaction, ledger: PrivacyLedger, number: int, tokens: Tokens
) -> rows.Charge:
    charges = rows.find_charges(found, ledger.budget)
    if number > len(charges):  # an older state of it was put back
        raise damaged(f"of {ledger.budget.dataset!r}", f"charge {number} is gone")
    _check_newest(ledger, charges[number - 1], tokens)
    return charges[number - 1]


def _check_newest(ledger: PrivacyLedger, charge: rows.Charge, tokens: Tokens) -> None:
    """Raise PrivacyError unless the charge is unfinished and has one of the tokens."""
    name = f"charge {charge.number} of {ledger.budget.dataset!r}"
    if charge.fitted is not None:
        raise PrivacyError(
            f"{name} must be of a fit that was interrupted, got one that is finished: "
            "to go on would be a second fit. Start it anew."
        )
    if charge.token not in tokens:
        raise PrivacyError(
            f"{name} must be of a fit that goes on from its newest checkpoint, got an "
            "older one: another run, of a copy of checkpoint_dir, has gone on, or the "
            "ledger was put back from a copy. Use the folder of that run, or start "
            "anew in an empty one."
        )
