"""Reports and model cards; nothing here decides a privacy statement.

guarantee.py: what a statement implies.
html.py, svg.py, templates/: one self-contained page about a fit.
ledger.py: what a ledger holds. card.py: a model card.
spending.py, serving.py: a page about a whole ledger, for those who spend it.
"""
