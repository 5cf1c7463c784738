"""Where the rows of a ledger are: a file, or a PostgreSQL database."""
