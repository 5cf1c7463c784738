"""What improves a fitted classifier by private records of its own, for a budget.

The classifier is used as it is. The records are others than it was trained on: they are
bounded and summed, noise is drawn, and their ledger is charged, as in a fit; so each
tool here has a privacy statement. Tools that draw no noise are in `privfeat.analysis`.
"""

from privfeat.postprocessing.temperature import TemperatureScaling

__all__ = ["TemperatureScaling"]
