"""What a data set may spend, what was spent, and why no charge can vanish.

``budget`` decides, ``privacy_ledger`` is what users hold, ``rows`` what is written,
``names`` which names may stand in it, ``opening`` where it is and what those read who
only read, and ``charging`` how a fit is charged and goes on. Behind ``store``, in
``stores``: a file (``chained_log``, ``file_store``; ``sqlite_store`` takes over old
ones) or a database (``postgres_store``, ``postgres_tables``).
"""
