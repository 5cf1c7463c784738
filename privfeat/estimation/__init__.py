"""What estimators of all kinds share.

``bases`` declares what a constructor takes. ``inputs`` checks what ``fit`` is given,
and says which records of a user count. ``labels`` turns ``y`` into a problem of classes
or numbers, ``fitting`` is what stands around every fit, and ``predictor`` predicts.
``rows`` bounds the records that linear fits and private steps sum.
The checks of parameters are here for who adds an estimator.
"""

from privfeat._checks import (
    check_between,
    check_bool,
    check_choice,
    check_int,
    check_positive,
    check_real,
    optional,
)

__all__ = [
    "check_between",
    "check_bool",
    "check_choice",
    "check_int",
    "check_positive",
    "check_real",
    "optional",
]
