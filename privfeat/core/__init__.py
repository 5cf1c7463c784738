"""The audited core: what one record changes, what noise hides it, what that costs.

Read in this order:

- what one record changes, with proofs: ``sensitivity``, ``replacement``;
- why the bounds hold in floating point: ``grid``, ``clipping``;
- sums over records, free of rounding: ``records``, ``losses``, ``kernels``, ``totals``,
  ``statistics``, ``confidence``; ``devices`` checks the hardware, ``processes`` lets
  several hosts share one fit, and ``leaving`` ends a process that lost the others;
- what the noise must be: ``accounting``, ``pld``, ``plan``, ``noise_levels``,
  ``calibration``, ``rounding``;
- noise: ``threefish``, ``keys``, ``noise``; without floating point, and what that
  costs: ``discrete``, ``exact``;
- the only place where noise is added: ``mechanisms``, which makes a ``release`` of a
  sum; ``observation`` lets audits watch it;
- what is said of a fit: ``release_record``, ``statement``, ``statement_selection``,
  ``statement_json``, ``statement_words``;
- what several fits cost: ``run_count``, ``selection``, ``composition``;
- how they are held to a budget, and why no charge can vanish: ``budget``, ``ledger``,
  ``ledger_rows``, ``event_json``, ``ledger_store``; in a file ``ledger_log``,
  ``ledger_file`` and ``ledger_sqlite``; in a database ``ledger_postgres`` and
  ``ledger_postgres_tables``; ``folds``, ``charging`` and ``ledger_runs``.

The proofs suppose something of the code around them, so these files outside decide
privacy too, and are to be read as strictly:

- which records count, how often, and how long their rows are: ``linear/_rows``,
  ``_target_rows``, ``_center``, ``_groups``, ``_labels`` and ``_team``;
- that each sum is released under a query with its own bound: ``linear/_base``,
  ``_classifier``, ``_stack`` and the estimators beside them, ``selection/_runs`` and
  ``search``, ``analysis/temperature``;
- that folds move no other record: ``selection/folds``;
- gradients of single records, clipped and summed: ``trainers/_base``, ``model``,
  ``tape``, ``layers``, ``convolutions``, ``contributions``, ``rows``, ``engine``,
  ``clipping``, ``adaptive``, ``federated``, ``units``, ``batches``, ``devices``,
  ``augment``, ``loop`` and ``networks``; fits that go on: ``checkpoints``,
  ``_resuming``.

What remains sees releases and public facts, or shows something to the owner of the
data: what may leave the house is listed in ``docs/what-leaves.md``.
"""
