"""A network of one layer, quick to fit."""

from flax import nnx

from privfeat import DPSGDClassifier
from privfeat.networks.layers import Dense


def one_layer(shape, n_outputs, *, rngs):
    return nnx.Sequential(Dense(*shape, n_outputs, rngs=rngs))


def made(**options):
    given = {"model": one_layer, "noise_multiplier": 1.0, "classes": range(3)}
    given |= {"n_iter": 3, "expected_batch_size": 8, "random_state": 1}
    return DPSGDClassifier(**(given | {"microbatch_size": 4} | options))
