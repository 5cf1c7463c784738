"""Verbs for before records are read: budgets, sizes, columns, and what to try."""
