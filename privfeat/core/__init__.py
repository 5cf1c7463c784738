"""The audited core: what one record changes, what noise hides it, what that costs.

Seven folders are the stages of the argument, in this order: ``bounds``, ``sums``,
``accounting``, ``noise``, ``statement``, ``callers``, ``ledger``. None knows an
estimator, and each uses only those before it. ``README.md`` beside this file says what
to check in each, and lists the files outside on which the proofs rest.
"""
