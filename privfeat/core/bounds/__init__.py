"""What one record, or one user, can do to a sum: bounds, each with its proof.

``grid``, ``rows``, ``sparse`` and ``clipping`` bound rows and residuals in floating
point; ``losses`` has the derivatives. ``sensitivity`` and ``replacement`` prove what a
record moves, and ``user_clips`` and ``users`` what a user does.
"""
