"""Tests whether a fit keeps its privacy statement, on data that need no privacy.

``replay``: two fits on neighbouring data, and how far each exact sum moves.
``noise_check``: whether the noise has the declared size, and is drawn anew.
``one_run``: a lower bound on epsilon from one fit with planted records.
``membership``: how well losses show members. ``sanity``: what a fit must not learn.
``smallest_noise``: the smallest noise at which it does not.

Every function here reads exact sums, losses or both: no privacy statement covers what
it returns. Use synthetic or public data.
"""

from privfeat.audit.membership import MembershipResult, membership
from privfeat.audit.noise_check import NoiseResult, check_noise
from privfeat.audit.one_run import OneRunResult, audit_one_run
from privfeat.audit.recorder import Recorder, recording
from privfeat.audit.replay import ReplayResult, replay, replay_neighbours
from privfeat.audit.sanity import SanityResult, pattern_test, random_label_test
from privfeat.audit.smallest_noise import SmallestNoise, smallest_noise

__all__ = [
    "MembershipResult",
    "NoiseResult",
    "OneRunResult",
    "Recorder",
    "ReplayResult",
    "SanityResult",
    "SmallestNoise",
    "audit_one_run",
    "check_noise",
    "membership",
    "pattern_test",
    "random_label_test",
    "recording",
    "replay",
    "replay_neighbours",
    "smallest_noise",
]
