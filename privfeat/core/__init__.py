"""The audited core: the only code that decides what a privacy statement says.

Read in this order: ``sensitivity`` (what one record changes, with proofs),
``grid`` and ``clipping`` (why the bounds hold in floating point), ``records``,
``losses``, ``kernels``, ``totals`` and ``statistics`` (sums over records, free of
rounding), ``accounting``, ``pld``, ``plan``, ``noise_levels`` and ``calibration`` (what
the noise must be), ``keys``, ``noise``, ``discrete``,
``exact`` (noise without floating point, and what it costs) and ``mechanisms`` (the only
place where a sum becomes a ``Release``), ``observation`` (how audits watch that),
``release_record`` and ``statement`` (what is said of it; ``statement_json`` and
``statement_words`` write it), ``repetition``, ``selection`` and ``composition`` (what
several fits cost), and ``budget``, ``ledger``, ``ledger_rows``, ``event_json``,
``ledger_store``, ``ledger_log``, ``ledger_file``, ``ledger_runs``, ``ledger_sqlite``,
``ledger_postgres``, ``ledger_postgres_tables`` and ``charging`` (how they are held to a
budget, and why no charge can vanish). ``confidence`` is one
sum more, with its bound; ``processes`` lets several hosts share one fit.
Everything outside this folder handles releases, not sums, so it can change
accuracy but not privacy.
"""
