"""Tools that improve a fitted classifier on private records, for a budget.

The classifier is used as it is. The records, best those that it was not trained on, are
bounded and summed, noise is drawn, and their ledger is charged, as in a fit; so each
tool has a privacy statement. Tools that draw no noise are in `privfeat.analysis`.
"""

from privfeat.recalibration.conformal import ConformalClassifier
from privfeat.recalibration.temperature import TemperatureScaling

__all__ = ["ConformalClassifier", "TemperatureScaling"]
