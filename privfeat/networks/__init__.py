"""Full-network DP-SGD with JAX and flax: ``pip install 'privfeat[train]'``.

``classifier`` and ``regressor`` are the estimators, on ``model``, one private fit, and
``parameters``. A fit goes through these folders:

- ``images``: what is given, as arrays, and views of it.
- ``models``: the architectures, made of ``layers``; ``weights`` loads those of timm.
- ``engine``: the sum of clipped gradients of a batch.
- ``training``: units (records or users), the noisy steps, optimizers, checkpoints.

Plans, keys and noise are those of `privfeat.core`, as for the linear estimators.
"""

try:
    import flax  # noqa: F401
except ImportError as error:
    raise ImportError(
        "privfeat.networks needs flax. Run pip install 'privfeat[train]'."
    ) from error

from privfeat.networks.classifier import DPSGDClassifier
from privfeat.networks.images.records import read_folder
from privfeat.networks.models import NETWORKS
from privfeat.networks.regressor import DPSGDRegressor
from privfeat.networks.weights import load_timm_weights

__all__ = [
    "NETWORKS",
    "DPSGDClassifier",
    "DPSGDRegressor",
    "load_timm_weights",
    "read_folder",
]
