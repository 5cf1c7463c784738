"""Full-network DP-SGD with JAX and flax: ``pip install 'privfeat[train]'``.

``classifier`` and ``regressor`` hold the estimators on the bases ``_base``,
``_resuming`` and ``_parameters``. One fit goes through ``images`` (records), ``units``
(what is protected as one: records, or the users of ``federated``), ``models`` (the
architectures, made of ``layers``), ``model`` (a network as a function of named
parameters), ``engine`` (sums of clipped gradients: ``tape`` records a forward pass,
``contributions`` makes per-record norms of it, ``clipping`` the factors, ``adaptive``
bounds that follow the norms), ``augment`` and ``color_jitter`` (views of a record),
``batches`` (physical batches), ``devices`` (all of this machine), ``optimizers``,
``loop`` (the noisy steps), ``checkpoints``, ``weights`` (of timm) and ``prediction``.
Plans, keys and noise are those of `privfeat.core`, as for the linear estimators.
"""

try:
    import flax  # noqa: F401
except ImportError as error:
    raise ImportError(
        "privfeat.networks needs flax. Run pip install 'privfeat[train]'."
    ) from error

from privfeat.networks.classifier import DPSGDClassifier
from privfeat.networks.images import read_folder
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
