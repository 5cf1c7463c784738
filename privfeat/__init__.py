"""Differentially private linear classifiers on features of frozen networks.

>>> from privfeat import DPFC
>>> DPFC(epsilon=1.0, delta=1e-5)
DPFC(epsilon=1.0)
"""

from importlib import import_module
from importlib.util import find_spec
from threading import RLock
from typing import TYPE_CHECKING, Any

from privfeat._version import __version__

if TYPE_CHECKING:
    from privfeat.core.ledger.privacy_ledger import PrivacyLedger
    from privfeat.core.statement.composition import TotalCost, compose
    from privfeat.core.statement.privacy_statement import PrivacyStatement
    from privfeat.data import FeatureFileError, open_features
    from privfeat.exceptions import (
        BudgetExceededError,
        LedgerError,
        PrivacyError,
        PrivacyWarning,
    )
    from privfeat.linear import (
        DPFC,
        DPAdamLinear,
        DPLeastSquares,
        DPLeastSquaresRegressor,
        DPNearestMean,
        DPNewton,
    )
    from privfeat.networks import DPSGDClassifier, DPSGDRegressor
    from privfeat.persistence import ModelFileError, load, save
    from privfeat.pipeline import PrivatePipeline
    from privfeat.preprocessing import PublicColumns
    from privfeat.recalibration import ConformalClassifier, TemperatureScaling
    from privfeat.selection import DPRandomizedSearch, HashKFold, search_cost

# Heavy parts (JAX, h5py) are imported when a name is first used.
_HOMES = {
    "BudgetExceededError": "privfeat.exceptions",
    "ConformalClassifier": "privfeat.recalibration",
    "DPAdamLinear": "privfeat.linear",
    "DPFC": "privfeat.linear",
    "DPLeastSquares": "privfeat.linear",
    "DPLeastSquaresRegressor": "privfeat.linear",
    "DPNearestMean": "privfeat.linear",
    "DPNewton": "privfeat.linear",
    "DPRandomizedSearch": "privfeat.selection",
    "DPSGDClassifier": "privfeat.networks",
    "DPSGDRegressor": "privfeat.networks",
    "FeatureFileError": "privfeat.data",
    "HashKFold": "privfeat.selection",
    "LedgerError": "privfeat.exceptions",
    "ModelFileError": "privfeat.persistence",
    "PrivacyError": "privfeat.exceptions",
    "PrivacyLedger": "privfeat.core.ledger.privacy_ledger",
    "PrivacyStatement": "privfeat.core.statement.privacy_statement",
    "PrivacyWarning": "privfeat.exceptions",
    "PrivatePipeline": "privfeat.pipeline",
    "PublicColumns": "privfeat.preprocessing",
    "TemperatureScaling": "privfeat.recalibration",
    "TotalCost": "privfeat.core.statement.composition",
    "compose": "privfeat.core.statement.composition",
    "load": "privfeat.persistence",
    "open_features": "privfeat.data",
    "save": "privfeat.persistence",
    "search_cost": "privfeat.selection",
}

__all__ = [
    "DPFC",
    "BudgetExceededError",
    "ConformalClassifier",
    "DPAdamLinear",
    "DPLeastSquares",
    "DPLeastSquaresRegressor",
    "DPNearestMean",
    "DPNewton",
    "DPRandomizedSearch",
    "FeatureFileError",
    "HashKFold",
    "LedgerError",
    "ModelFileError",
    "PrivacyError",
    "PrivacyLedger",
    "PrivacyStatement",
    "PrivacyWarning",
    "PrivatePipeline",
    "PublicColumns",
    "TemperatureScaling",
    "TotalCost",
    "__version__",
    "compose",
    "load",
    "open_features",
    "save",
    "search_cost",
]
# ``import *`` takes what is installed; networks need the extra ``train``.
if find_spec("flax") is not None:
    __all__ += ["DPSGDClassifier", "DPSGDRegressor"]


# Threads that import parts of one package at once may find it half made.
_importing = RLock()


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with _importing:
        value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
