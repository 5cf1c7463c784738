"""What estimators share, and nothing that decides a statement.

``parameters`` declares what a constructor takes. ``inputs`` checks what ``fit`` is
given, and says which records of a user count. ``labels`` turns labels into classes,
``problem`` holds what a fit makes of ``y``, ``scores`` makes probabilities, and
``apart`` keeps a fit from what other threads do to its estimator.
"""
