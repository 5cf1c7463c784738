"""DPSGDRegressor: a network for numbers."""

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfeat._messages import array_of
from privfeat._types import Adjacency
from privfeat.core.ledger.privacy_ledger import PrivacyLedger
from privfeat.linear._inputs import ScoredRegressor
from privfeat.networks import losses
from privfeat.networks._base import DPSGDModel
from privfeat.networks._docs import document
from privfeat.networks._parameters import Model
from privfeat.networks.adaptive import Clipping
from privfeat.networks.augment import Augmentation
from privfeat.networks.checkpoints import Folder
from privfeat.networks.clipping import ClipFactor, ClipStyle
from privfeat.networks.engine import Engine, RecordLoss
from privfeat.networks.optimizers import Optimizer, Schedule


@document
class DPSGDRegressor(ScoredRegressor, DPSGDModel):
    """A network trained by DP-SGD to predict numbers, with the squared loss.

    Targets are used as they are: scale them by public constants to about [-1, 1].

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    Notes
    -----
    {guarantees}
    """

    def __init__(
        self,
        *,
        model: Model = "mlp",
        epsilon: float | None = None,
        delta: float = 1e-5,
        noise_multiplier: float | None = None,
        adjacency: Adjacency = "add_remove",
        epochs: float = 10.0,
        n_iter: int | None = None,
        expected_batch_size: float | None = 256,
        microbatch_size: int | None = None,
        clipping: Clipping = "fixed",
        clip_norm: float | tuple[tuple[float, float], ...] = 1.0,
        clip_factor: ClipFactor = "abadi",
        clip_style: ClipStyle = "flat",
        engine: Engine = "auto",
        trust_model: bool = False,
        optimizer: str | Optimizer | None = None,
        learning_rate: float | None = None,
        schedule: Schedule = "constant",
        warmup_steps: int = 0,
        weight_decay: float = 0.0,
        ema_decay: float | None = None,
        augmentation: Augmentation = "none",
        n_copies: int = 1,
        n_votes: int = 1,
        frozen: tuple[str, ...] | int = (),
        weights: str | os.PathLike[str] | None = None,
        max_group_size: int | None = None,
        local_epochs: int = 1,
        local_batch_size: int | None = None,
        local_learning_rate: float | None = None,
        ledger: PrivacyLedger | None = None,
        checkpoint_dir: Folder | None = None,
        checkpoint_every: int = 100,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            model=model,
            epsilon=epsilon,
            delta=delta,
            noise_multiplier=noise_multiplier,
            adjacency=adjacency,
            epochs=epochs,
            n_iter=n_iter,
            expected_batch_size=expected_batch_size,
            microbatch_size=microbatch_size,
            clipping=clipping,
            clip_norm=clip_norm,
            clip_factor=clip_factor,
            clip_style=clip_style,
            engine=engine,
            trust_model=trust_model,
            optimizer=optimizer,
            learning_rate=learning_rate,
            schedule=schedule,
            warmup_steps=warmup_steps,
            weight_decay=weight_decay,
            ema_decay=ema_decay,
            augmentation=augmentation,
            n_copies=n_copies,
            n_votes=n_votes,
            frozen=frozen,
            weights=weights,
            max_group_size=max_group_size,
            local_epochs=local_epochs,
            local_batch_size=local_batch_size,
            local_learning_rate=local_learning_rate,
            ledger=ledger,
            checkpoint_dir=checkpoint_dir,
            checkpoint_every=checkpoint_every,
            random_state=random_state,
            verbose=verbose,
        )

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return predictions, (n_samples,) or (n_samples, n_outputs) as ``y`` was."""
        scores = self._scores(X)
        return scores if self.n_outputs_ > 1 else scores[:, 0]

    def _targets(
        self, y: Any
    ) -> tuple[NDArray[Any], dict[str, Any], int, tuple[str, ...], bool]:
        targets = array_of(y, np.float32)
        if targets.ndim not in (1, 2) or not np.all(np.isfinite(targets)):
            raise ValueError(
                "y must have shape (n_samples,) or (n_samples, n_outputs) and be "
                "finite."
            )
        targets = targets.reshape(len(targets), -1)
        n_outputs = targets.shape[1]
        return targets, {}, n_outputs, (f"the number of outputs ({n_outputs})",), False

    def _loss(self) -> RecordLoss:
        return losses.half_squared_error
