"""Budgets before they are spent."""
