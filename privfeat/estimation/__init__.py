"""What estimators share, and nothing that decides a statement.

``parameters`` declares what a constructor takes, ``inputs`` checks arrays and seeds,
``labels`` turns labels into classes, ``users`` says which records of a user count,
``problem`` holds what a fit makes of ``y``, and ``apart`` keeps a fit from what other
threads do to its estimator.
"""
