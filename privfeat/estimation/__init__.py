"""What estimators share, and nothing that decides a statement.

``bases`` declares what a constructor takes. ``inputs`` checks what ``fit`` is given,
and says which records of a user count. ``labels`` turns ``y`` into a problem of classes
or numbers, ``fitting`` is what stands around every fit, and ``predictor`` predicts.
"""
