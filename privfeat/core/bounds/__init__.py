"""What one record, or one user, can do to a sum: bounds, each with its proof.

Read ``sensitivity`` and ``replacement`` for the proofs, ``grid`` and ``clipping`` for
why they hold in floating point, and ``losses`` for the derivatives in them.
"""
