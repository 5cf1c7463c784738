"""How tests plant faults: the one table of the internals that they replace.

A test asks for the fixture ``plant``, names a seam in words, and gives what is to be
in its place until the test ends::

    def test_the_check_notices_a_clip_that_does_nothing(plant):
        plant("clip of residuals", lambda residuals, *_, **__: residuals)
        assert not keeps_its_bound()

Moving or renaming an internal changes its line here, and no test.
"""

import pkgutil
import sys
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from inspect import unwrap
from typing import NamedTuple

import pytest

import privfeat

_IN_SUMS = ("privfeat.networks.", "privfeat.core.sums.batches:")


class Seam(NamedTuple):
    """The places at which one thing is replaced, each as ``module:attribute``.

    ``compiled``, a function that calls it, is not compiled while the fault is there.
    """

    places: tuple[str, ...]
    compiled: str | None = None


def _at(*places, compiled=None):
    places = tuple(f"privfeat{place}" for place in places)
    return Seam(places, compiled and f"privfeat{compiled}")


_STORES, _SPECTRUM = ".core.ledger.stores", ".solvers.spectrum"
_ROWS, _SUMS = ".estimation.rows", ".core.sums"
_STATEMENT = ".core.statement.privacy_statement"
SEAMS = {
    # bounds
    "bound on one record": _at(".core.bounds.sensitivity:_bound"),
    "residuals of the loss": _at(
        ".core.bounds.losses:residuals",
        compiled=".core.sums.arithmetic.kernels:gradient_of",
    ),
    "curvatures of the loss": _at(".core.bounds.losses:curvatures"),
    "clip of rows": _at(
        f"{_ROWS}.scaling:clip_rows", compiled=f"{_ROWS}.bounded:bounded_rows"
    ),
    "clip of residuals": _at(
        ".core.sums.arithmetic.residuals:clip_residuals",
        ".core.sums.arithmetic.kernels:clip_residuals",
        compiled=".core.sums.arithmetic.kernels:gradient_of",
    ),
    "trial of the products": _at(".core.sums.devices:products_are_exact"),
    "clip that a device is tried with": _at(".core.sums.devices:clip_rows"),
    "trial of the clip on this device": _at(".core.sums.devices:_bounds_hold"),
    "bound of a chunk": _at(f"{_ROWS}.bounded:bounded_rows"),
    # sums
    "product of rows with themselves": _at(".core.sums.arithmetic.gram:gram_of"),
    "products of rows with others": _at(".core.sums.arithmetic.host:products_of"),
    "products of an accelerator": _at(".core.sums.arithmetic.kernels:products_of"),
    "memory for joined chunks": _at(".core.sums.arithmetic.gram:_JOINED_BYTES"),
    "outputs of batches": _at(".core.sums.arithmetic.host:_FEW_OUTPUTS"),
    "memory of a call": _at(".core.sums.calls:_CALL_BYTES"),
    "memory for Gram matrices": _at(".core.sums.statistics:_GRAMS_BYTES"),
    "calls between two carries": _at(".core.sums.totals:_PARTS_BEFORE_CARRY"),
    "choice of slices": _at(".core.sums.arithmetic.slices:uses_slices"),
    "rates of products": _at(".core.sums.arithmetic.slices:measured_rates"),
    "sums of digits": _at(".core.sums.arithmetic.slices:digit_sums"),
    # what a Gram matrix costs
    "measured curves": _at(".analysis.curves:_sets"),
    "fit on public records": _at(".analysis.tuning.kept:PublicFits.add"),
    "memory of the machine": _at("._memory:memory_bytes", f"{_SPECTRUM}:memory_bytes"),
    "groups of processes": _at("._memory:_GROUPS"),
    "columns from which eigenvectors are timed": _at(".solvers.spectrum:_MANY_COLUMNS"),
    "time of eigenvectors": _at(".solvers.spectrum:time_of_eigenvectors"),
    "eigenvectors of a matrix": _at(".solvers.spectrum:eigh"),
    "factor of a Gram matrix": _at(".solvers.spectrum:_factor"),
    "sum of a total": _at(".core.sums.totals:Total.sum"),
    "team of this process": _at(".core.sums.processes:current_team"),
    "team of this context": _at(".core.sums.processes:_team"),
    # accounting
    "mu of a budget": _at(".core.accounting.conversions:gaussian_mu"),
    "clip of users": _at(".core.bounds.users:user_factors"),
    "cost of a user": _at(".core.accounting.plan:Query.per_user"),
    "event of a Gaussian release": Seam(("dp_accounting:GaussianDpEvent",)),
    "loss distribution of a Gaussian release": Seam(
        ("dp_accounting.pld.privacy_loss_distribution:from_gaussian_mechanism",)
    ),
    "check of a positive number": _at(".core.accounting.plan:check_positive"),
    "epsilon by PLD": _at(".core.accounting.pld:pld_epsilon"),
    "mass that rounding takes": _at(".core.accounting.pld:_LOST_PER_STEP"),
    "mean number of runs": _at(".core.accounting.run_count:RunCount.mean"),
    "search for the epsilon of a selection": _at(".core.accounting.selection:bisect"),
    "epsilon of one run": _at(".core.accounting.selection:gaussian_epsilon"),
    "divergence of a selection": _at(".core.statement.composition:selection_rdp"),
    "plan of a fit": _at(".estimation.plans:plan_releases"),
    # noise
    "Gaussian noise": _at(".core.noise.draws:gaussian"),
    "symmetric Gaussian noise": _at(".core.noise.draws:symmetric_gaussian"),
    "random words": _at(".core.noise.draws:words_of"),
    "Poisson sample": _at(".core.noise.draws:bernoulli"),
    "exact Poisson sample": _at(".core.noise.discrete:bernoulli"),
    "number of runs": _at(".core.noise.draws:number_of_runs"),
    "split of the records": _at(".selection.search:bernoulli"),
    "discrete noise on a total": _at(".core.noise.gaussian_mechanism:noisy_total"),
    "whole number next to a total": _at(".core.noise.exact:rounded"),
    "hat over the discrete Gaussian": _at(".core.noise.discrete:_Hat.of"),
    "zeros at the end of a word": _at(".core.noise.discrete:_trailing_zeros"),
    "margin of float64 decisions": _at(".core.noise.discrete:_MARGIN"),
    "release of a sum": _at(".core.noise.gaussian_mechanism:GaussianMechanism.release"),
    "team that draws noise": _at(".core.noise.gaussian_mechanism:current_team"),
    "next key": _at(".core.noise.keys:KeyStream.draw"),
    "next key of noise": _at(".core.noise.keys:KeyStream.draw_noise_key"),
    "next words of a key": _at(".core.noise.keys:KeyStream.draw_words"),
    "operating system under the keys": _at(".core.noise.keys:os"),
    "secrets under the keys": _at(".core.noise.keys:secrets"),
    "bytes of the operating system": _at(".core.noise.keys:os.urandom"),
    "generator of public numbers": _at(".audit.random_numbers:default_rng"),
    # one private fit, its statement and its charge
    "mechanism of a fit": _at(".core.private_fit:PrivateFit.mechanism"),
    "class of mechanisms": _at(".core.private_fit:GaussianMechanism"),
    "charge around a fit": _at(".core.private_fit:charged"),
    "statement of a plan": _at(f"{_STATEMENT}:PrivacyStatement.from_plan"),
    "team that charges": _at(".core.ledger.charging:current_team"),
    "choice that no charge covers": _at(".core.ledger.charging:uncovered_or_scored"),
    # ledger
    "charge of a ledger": _at(".core.ledger.privacy_ledger:PrivacyLedger.charge"),
    "mark that a fit is done": _at(".core.ledger.charging:finish"),
    "copy of a ledger": _at(".core.ledger.privacy_ledger:PrivacyLedger.__reduce_ex__"),
    "row of a charge": _at(".core.ledger.rows:add_charge"),
    "seconds that a ledger waits": _at(".core.ledger.store:TIMEOUT"),
    "list of mounted disks": _at(".core.ledger.store:_MOUNTS"),
    "transaction of a store": _at(".core.ledger.store:Store.transaction"),
    "rows that a store finds": _at(".core.ledger.store:Transaction.select"),
    "row that a store adds": _at(".core.ledger.store:Transaction.insert"),
    "row that a store changes": _at(".core.ledger.store:Transaction.update"),
    "look at the kind of a ledger file": _at(f"{_STORES}.file_store:_is_old"),
    "lock of a ledger file": _at(f"{_STORES}.file_store:_lock"),
    "write to a ledger file": _at(f"{_STORES}.file_store:_write"),
    "append to a ledger file": _at(f"{_STORES}.file_store:_append"),
    "question to PostgreSQL about itself": _at(f"{_STORES}.postgres_store:_STATE"),
    "question to PostgreSQL about tables": _at(f"{_STORES}.postgres_tables:_FIND"),
    # linear
    "fit of a linear model": _at(".linear.model:DPLinearModel.fit"),
    "problem of a linear fit": _at(".linear.model:DPLinearModel._problem"),
    "steps of Adam": _at(".linear.adam:steps"),
    "solution of a linear fit": _at(".linear.model:DPLinearModel._solve"),
    "codes of the labels": _at(".estimation.labels:encode_labels"),
    "release of the mean": _at(f"{_ROWS}.bounded:release_mean"),
    "sum of the mean": _at(f"{_ROWS}.bounded:exact_class_sums"),
    "exact gradient": _at(f"{_SUMS}.statistics:exact_gradient"),
    "exact Gram matrix": _at(f"{_SUMS}.statistics:exact_gram"),
    "exact Gram matrices of the classes": _at(f"{_SUMS}.statistics:exact_class_grams"),
    "exact sums of the classes": _at(f"{_SUMS}.statistics:exact_class_sums"),
    "exact curvature matrices": _at(f"{_SUMS}.statistics:exact_curvature_grams"),
    "rows that are predicted at once": _at(".estimation.predictor:PREDICT_ROWS"),
    "read of bounded rows": _at(f"{_ROWS}.bounded:BoundedRows._read"),
    "read of lazy features": _at(".data:LazyFeatures.read"),
    "most rows of a fit": _at(f"{_ROWS}.bounded:MAX_ROWS"),
    "most rows of a private step": _at(".core.sums.records:MAX_ROWS"),
    "most rows of all processes": _at(".estimation.team:MAX_ROWS"),
    "memory for bounded rows": _at(f"{_ROWS}.bounded:_CACHE_BYTES"),
    "what is read at once": _at(f"{_ROWS}.bounded:_BLOCK_BYTES"),
    # networks
    "factors of the clip": _at(".networks.engine.clipped_sums:clip_factors"),
    "rules of the clip": _at(".networks.engine.clipping:_RULES"),
    "layers that the engine knows": _at(".networks.layers.basic:Tape.check_knows"),
    "norm by Gram matrices": _at(".networks.layers.contributions:gram"),
    "products of positions": _at(".networks.layers.contributions:_inner_products"),
    "slack for cancellation": _at(".networks.layers.contributions:GRAM_SLACK"),
    "cost of keeping gradients": _at(".networks.layers.contributions:_COST_OF_KEEPING"),
    "most terms of a sum": _at(".networks.layers.contributions:_MOST_TERMS"),
    "output of a norm layer": _at(".networks.layers:Norm.__call__"),
    "refusal of shared state": _at(".networks.engine.network:refuse_shared_state"),
    "records of a user": _at(".networks.training.federated:Slots.records"),
    "batches that fit into memory": _at(".networks.training.loop:physical_batches"),
    "sum of a batch as one vector": _at(".networks.training.loop:flatten"),
    "step of training": _at(".networks.training.loop:Trainer.step"),
    "schedule of training": _at(".networks.model:DPSGDModel._schedule"),
    "fit of a network": _at(".networks.model:DPSGDModel.fit"),
    "bytes of images in memory": _at(".networks.images.records:_IN_MEMORY"),
    "read of images in a file": _at(".data.images:StoredImages._read"),
    "bytes that processes compare": _at(".networks.team:_BYTES"),
    "scale of pixels": _at(".networks.model:pixel_scale"),
    "save of a checkpoint": _at(".networks.training.checkpoints:Checkpoints._save"),
    # selection
    "folds of a search": _at(".selection.cost:_n_splits"),
    "folds of private scores": _at(".selection.validation:HashKFold"),
    "one run of a search": _at(".selection.runs:Runner._run"),
    "check of a search": _at(".selection.runs:Runner._check"),
    "best run of a search": _at(".selection.runs:Runner.best"),
    "whether an estimator is ours": _at(".metrics.predictions:is_ours"),
    "whether products keep to one thread": _at(
        ".metrics.predictions:keeps_one_thread", "._process:keeps_one_thread"
    ),
    # the package, files, audits, commands
    "import of a part": _at(":import_module"),
    "modules of the names": _at(":_HOMES"),
    "bytes of a block": _at(".data.writing.parts:BLOCK_BYTES"),
    "bytes of a part": _at(".data.writing.writer:PART_BYTES"),
    "write of a model file": _at(".persistence.model_folder:write_atomically"),
    "write of an evaluation": _at(".metrics.files:write_atomically"),
    "load of a model": _at(".persistence:load"),
    "load of a statement": _at(".persistence:load_statement"),
    "save of a model": _at(".persistence:save"),
    "whether the cache is ours": _at(".estimation.fitting:_cache_is_ours"),
    "bodies whose code is kept": _at(".estimation.fitting:_open"),
    "audit by replay": _at(".audit:replay"),
    "audit of the noise": _at(".audit:check_noise"),
    "audit by random labels": _at(".audit:random_label_test"),
    "seed of a replay": _at(".audit.replay:seed_from"),
    "seconds between lines": _at("._progress:SECONDS_BETWEEN_LINES"),
    "clock of the lines": _at("._progress:monotonic"),
    "move of a bar": _at("._progress:Progress._move_to"),
    # extraction
    "network that is loaded": _at("_extract.network:load_backbone"),
    "answer of a hub": _at("_extract.hub:answers"),
    "rows of a block": _at("_extract.similarity:BLOCK_ROWS"),
    "batches of scattering": _at("_extract.scattering:ScatteringExtractor.batches"),
}


class Plant:
    """Replaces what a seam names, until it is undone."""

    def __init__(self, patch=None):
        self._patch = patch or pytest.MonkeyPatch()

    def __call__(self, name, fake, *, of=None):
        """Put ``fake`` in the place of the seam; ``of`` as for ``genuine``."""
        seam = seam_of(name)
        _import_all()
        for place in seam.places:
            self._patch.setattr(*found(name, place, of), fake)
        if seam.compiled:
            owner, attribute = found(name, seam.compiled)
            self._patch.setattr(owner, attribute, unwrap(getattr(owner, attribute)))
        batches = sys.modules.get("privfeat.networks.engine.choice")
        if batches and any(place.startswith(_IN_SUMS) for place in seam.places):
            # fits share what was compiled without the fault
            self._patch.setattr(batches, "_shared", batches._made)

    def genuine(self, name, *, of=None):
        """Return what is there now.

        Of a method, ``of`` names a subclass or an object of its own: the method is
        found, or replaced, there alone.
        """
        return getattr(*found(name, seam_of(name).places[0], of))

    def undo(self):
        """Put back what was there."""
        self._patch.undo()

    @contextmanager
    def context(self):
        """Give another, whose faults are gone after the body."""
        with pytest.MonkeyPatch.context() as patch:
            yield Plant(patch)


@cache
def _import_all():
    """Import every module: what is first imported while a fault is there keeps it."""
    for module in pkgutil.walk_packages(privfeat.__path__, "privfeat."):
        import_module(module.name)


def seam_of(name):
    """Return the seam of this name, or raise LookupError."""
    if name not in SEAMS:
        raise LookupError(f"tests/planting.py has no seam {name!r}: name one there.")
    return SEAMS[name]


def found(name, place, of=None):
    """Return the owner and the attribute at a place of a seam, or LookupError."""
    module, _, path = place.partition(":")
    *outer, attribute = path.split(".")
    try:
        owner = pkgutil.resolve_name(":".join([module, ".".join(outer)]))
        owner = owner if of is None else of
        getattr(owner, attribute)
    except (ImportError, AttributeError) as error:
        raise LookupError(
            f"{name!r} must be at {place}, found nothing there. Name its new place in "
            "SEAMS of tests/planting.py."
        ) from error
    return owner, attribute
