"""Parameters of linear estimators: ranges, meaning, and how help says it."""
