"""Users as units: DP-FedAvg, McMahan et al. 2018, Algorithm 1 (arXiv:1710.06963).

Every step draws each user with one probability. The records of a user train a copy of
the network for a few epochs of plain SGD. The update of the user is the parameters
before minus those after, and takes the place of a record's gradient: it is clipped,
summed, released with noise, divided by the expected number of users and subtracted by
the optimizer. With one record, one epoch and a local rate of 1 it is that gradient.

**Sensitivity.** 1 under add/remove, 2 under replace-one, in units of the clip norm,
however many records a user has, or may have.

*Proof.* A data set is a list of users, some of them absent. Given the earlier releases
and all keys, the update of a user is a function of that user's records alone: which of
them count is drawn for each user apart (`Users.kept_records`); slots without a record
repeat one of the same user; views and orders are drawn from the user's number; every
user trains a copy of the network, and no sum or layer sees the records of two. Clipped,
the update has norm at most the clip norm (`engine.clipping`); one that is not finite
counts as zero. Hence adding a user adds one such vector, and replacing a user exchanges
two, whatever their numbers of records.

**Differences from the paper.** All users have the weight 1, whatever their number of
records, and an update is clipped once, after the local training.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, Shaped
from numpy.typing import NDArray

from privfeat.estimation.inputs import Users
from privfeat.networks.engine.clipped_sums import Trained
from privfeat.networks.engine.network import Parameters
from privfeat.networks.images.augment import Views
from privfeat.networks.layers.contributions import Contribution, kept, widened
from privfeat.networks.training.units import Units


class UserInputs(NamedTuple):
    """The records of some users, in slots. Sensitive."""

    views: Float[Array, "n s k ..."]  # ``k`` of the record in each of ``s`` slots
    filled: Bool[Array, "n s"]  # slots that hold a record that counts
    orders: Int[Array, "n t b"]  # the slots of each of ``t`` local steps


@dataclass(frozen=True)
class LocalTraining:
    """How the records of a user become an update: terms for `engine.clipped_sums`."""

    max_group_size: int  # how many records of a user count
    epochs: int
    batch_size: int  # records of a local step, at most ``max_group_size``
    learning_rate: float

    def __call__(
        self,
        trained: Trained,
        parameters: Parameters,
        inputs: UserInputs,
        targets: Shaped[Array, "n s ..."],
    ) -> dict[str, Contribution]:
        """Return the update of every user, by parameter."""
        network, loss, trainable = trained
        fixed = {name: parameters[name] for name in parameters if name not in trainable}
        start = {name: parameters[name] for name in trainable}
        rate = jnp.float32(self.learning_rate)

        def batch_loss(
            moving: Parameters, views: Any, targets: Any, present: Any
        ) -> Float[Array, ""]:
            copies = views.shape[1]
            scores = network(moving | fixed, views.reshape(-1, *views.shape[2:]))
            losses = loss(scores, jnp.repeat(targets, copies, axis=0))
            means = jnp.mean(losses.reshape(-1, copies), axis=1)
            number = jnp.maximum(jnp.sum(present.astype(means.dtype)), 1.0)
            return jnp.sum(jnp.where(present, means, 0.0)) / number

        def update(views: Any, filled: Any, orders: Any, targets: Any) -> Parameters:
            def step(lost: Parameters, slots: Any) -> tuple[Parameters, None]:
                moving = {n: leaf - lost[n] for n, leaf in start.items()}
                moving = {n: moving[n].astype(leaf.dtype) for n, leaf in start.items()}
                batch = views[slots], targets[slots], filled[slots]
                gradient = jax.grad(batch_loss)(moving, *batch)
                return {n: lost[n] + rate * gradient[n] for n in trainable}, None

            # in float32 at least, whatever the network computes in
            nothing = jax.tree.map(lambda leaf: jnp.zeros_like(widened(leaf)), start)
            lost: Parameters = jax.lax.scan(step, nothing, orders)[0]
            return lost

        # together they would be grouped convolutions, which a CPU is slow at
        size = None if jax.default_backend() == "cpu" else len(targets)
        updates: Parameters = jax.lax.map(
            lambda user: update(*user), (*inputs, targets), batch_size=size
        )
        return {name: kept(value) for name, value in updates.items()}

    @partial(jax.jit, static_argnums=0)
    def orders(
        self,
        key: Key[Array, ""],
        users: Int[Array, " n"],
        filled: Bool[Array, "n s"],
    ) -> Int[Array, "n t b"]:
        """Return the slots of all local steps; each epoch has another order.

        Slots without a record come last, so that whole batches hold records.
        """

        def order(own: Key[Array, ""], filled: Bool[Array, " s"]) -> Int[Array, "t b"]:
            ranks = jax.random.uniform(own, (self.epochs, len(filled)))
            ranks = jnp.where(filled[None], ranks, 2.0)
            return jnp.argsort(ranks, axis=1).reshape(-1, self.batch_size)

        keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, users)
        found: Int[Array, "n t b"] = jax.vmap(order)(keys, filled)
        return found

    def alone(self, inputs: Any, targets: Any) -> tuple[UserInputs, Any]:
        """Return the inputs and targets of users of one record each."""
        n = len(targets)
        filled, orders = jnp.ones((n, 1), bool), jnp.zeros((n, self.epochs, 1), int)
        return UserInputs(inputs[:, None], filled, orders), targets[:, None]


class Slots:
    """Where the records of each user are: every user has the same number of slots.

    ``key`` is 64 fresh bits, drawn apart from the data: it chooses the records that
    count. ``n_slots`` is at least ``users.max_group_size``.
    """

    def __init__(self, users: Users, key: int, n_slots: int) -> None:
        places = np.flatnonzero(users.kept_records(key))
        _, codes, self._counts = np.unique(
            users.ids[places], return_inverse=True, return_counts=True
        )
        self._places = places[np.argsort(codes, kind="stable")]
        self._starts = np.cumsum(self._counts) - self._counts
        self._slots = np.arange(n_slots)

    def __len__(self) -> int:
        return len(self._counts)

    def tobytes(self) -> bytes:
        """Return whose every record is, as far as it counts."""
        return self._places.tobytes() + self._counts.tobytes()

    def filled(self, users: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return which slots of these users hold a record."""
        return self._slots < self._counts[users][:, None]

    def records(self, users: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the record in every slot; a user's last one where there is none."""
        own = np.minimum(self._slots, self._counts[users][:, None] - 1)
        found: NDArray[np.intp] = self._places[self._starts[users][:, None] + own]
        return found


@dataclass(frozen=True)
class ByUser:
    """An array of records, indexed by the numbers of users."""

    values: NDArray[Any]
    slots: Slots

    def __getitem__(self, users: NDArray[np.intp]) -> NDArray[Any]:
        """Return the values of these users, (n, n_slots, ...)."""
        places = self.slots.records(users)
        found: NDArray[Any] = self.values[places.ravel()]
        return found.reshape(*places.shape, *found.shape[1:])


def whole_users(
    records: NDArray[Any],
    targets: NDArray[Any],
    views: Views,
    users: Users,
    key: int,
    local: LocalTraining,
) -> Units:
    """Return every user, with the records that count, as a unit.

    ``key`` is 64 fresh bits, drawn apart from the data.
    """
    n_slots = -(-local.max_group_size // local.batch_size) * local.batch_size
    slots = Slots(users, key, n_slots)

    def inputs_of(rows: Any, numbers: Any, filled: Any, key: Any) -> UserInputs:
        of_views, of_orders = jax.random.split(key)
        each = (numbers[:, None] * n_slots + np.arange(n_slots)).ravel()
        seen = views(rows.reshape(-1, *rows.shape[2:]), each, of_views)
        filled = jnp.asarray(filled)
        orders = local.orders(of_orders, numbers, filled)
        return UserInputs(seen.reshape(-1, n_slots, *seen.shape[1:]), filled, orders)

    def prepare(rows: Any, numbers: Any, key: Key[Array, ""]) -> UserInputs:
        return inputs_of(rows, numbers, slots.filled(numbers), key)

    def whole(records: Any, targets: Any, numbers: Any, key: Any) -> Any:
        rows, labels = (
            np.repeat(values[:, None], n_slots, axis=1) for values in (records, targets)
        )
        return inputs_of(rows, numbers, np.ones(rows.shape[:2], bool), key), labels

    return Units(
        "user",
        len(slots),
        ByUser(records, slots),
        ByUser(targets, slots),
        prepare,
        local,
        local.alone,
        whole,
        (
            "the number of users, which the sampling probability is made of",
            f"that of a user's records at most {local.max_group_size} count",
        ),
    )
