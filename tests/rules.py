"""Which folder may import what: the table that ``tests/test_imports.py`` enforces."""

from dataclasses import dataclass

from tests.audited import stages

BASE = {"numpy", "scipy"}
SHARED = {
    "privfeat._process",
    "privfeat._checks",
    "privfeat._files",
    "privfeat._messages",
    "privfeat._progress",
    "privfeat._memory",
    "privfeat._rewording",
    "privfeat._types",
    "privfeat._version",
    "privfeat._warnings",
    "privfeat.exceptions",
}
# What estimators of every kind are made of.
OF_ESTIMATORS = SHARED | {"privfeat.core", "privfeat.data", "privfeat.estimation"}


@dataclass(frozen=True)
class Rule:
    """What one folder, or one file directly in a package, may import."""

    third_party: frozenset[str]
    ours: frozenset[str]
    # third-party roots that must not be imported when the module is
    lazy: frozenset[str] = frozenset()


def rule(third_party=(), ours=(), lazy=()):
    return Rule(
        frozenset(BASE | {*third_party, *lazy}), frozenset(ours), frozenset(lazy)
    )


def core_rules():
    """A folder of the core imports those before it: the stages of the argument."""
    names = stages()
    return {
        f"privfeat/core/{stage}": rule(
            ["jax", "jaxtyping"],
            ours=SHARED | {f"privfeat.core.{name}" for name in names[: index + 1]},
            # which has called, if it looks at what calls
            lazy=["sklearn"] if stage == "callers" else [],
        )
        for index, stage in enumerate(names)
    }


RULES = {
    "privfeat/__init__.py": rule(ours={"privfeat"}),
    "privfeat/_version.py": rule(),
    "privfeat/_process.py": rule(
        ["jaxtyping", "threadpoolctl"], ours={"privfeat.exceptions"}
    ),
    "privfeat/_checks.py": rule(ours=SHARED),
    "privfeat/_types.py": rule(["jaxtyping"], ours=SHARED),
    "privfeat/_encoding.py": rule(),
    "privfeat/_files.py": rule(),
    "privfeat/_memory.py": rule(),
    "privfeat/_messages.py": rule(ours=SHARED),
    "privfeat/_rewording.py": rule(lazy=["sklearn"]),
    "privfeat/_progress.py": rule(["tqdm"], ours={"privfeat._warnings"}),
    "privfeat/_warnings.py": rule(ours={"privfeat.exceptions", "privfeat._messages"}),
    "privfeat/exceptions.py": rule(ours=SHARED),
    "privfeat/core": rule(ours=SHARED | {"privfeat.core"}),
    **core_rules(),
    "privfeat/solvers": rule(
        ["jax", "jaxtyping"],
        ours=SHARED | {"privfeat.core.noise.release", "privfeat.solvers"},
    ),
    "privfeat/estimation": rule(
        ["jax", "jaxtyping", "sklearn"],
        ours=OF_ESTIMATORS | {"privfeat._encoding", "privfeat.solvers.spectrum"},
    ),
    "privfeat/linear": rule(
        ["jax", "jaxtyping", "optax", "sklearn", "tqdm"],
        ours=OF_ESTIMATORS
        | {
            "privfeat._encoding",
            "privfeat.linear",
            "privfeat.solvers",
        },
    ),
    "privfeat/selection": rule(
        ["sklearn"],
        ours=OF_ESTIMATORS
        | {"privfeat.metrics", "privfeat.persistence", "privfeat.selection"},
    ),
    "privfeat/pipeline": rule(
        ["sklearn"],
        ours=OF_ESTIMATORS | {"privfeat.pipeline", "privfeat.preprocessing"},
    ),
    "privfeat/preprocessing": rule(
        ["jax", "sklearn"],
        ours=OF_ESTIMATORS | {"privfeat.preprocessing", "privfeat.solvers"},
    ),
    "privfeat/recalibration": rule(
        ["sklearn"],
        ours=OF_ESTIMATORS
        | {
            "privfeat.metrics",
            "privfeat.persistence",
            "privfeat.recalibration",
            "privfeat.solvers",
        },
    ),
    "privfeat/metrics": rule(
        ["sklearn"],
        ours=OF_ESTIMATORS
        | {
            "privfeat._files",
            "privfeat.metrics",
            "privfeat.persistence",
            "privfeat.solvers",
        },
    ),
    "privfeat/networks": rule(
        ["filelock", "flax", "jax", "jaxtyping", "optax", "sklearn", "tqdm"],
        ours=OF_ESTIMATORS
        | {
            "privfeat._encoding",
            "privfeat.networks",
        },
        lazy=["PIL", "orbax", "safetensors"],
    ),
    "privfeat/data": rule(
        ["h5py", "tqdm"],
        ours=SHARED | {"privfeat._files", "privfeat.core.callers", "privfeat.data"},
        lazy=["PIL", "filelock", "pandas", "pyarrow"],
    ),
    "privfeat/audit": rule(["sklearn"], ours={"privfeat"}, lazy=["matplotlib"]),
    "privfeat/cli": rule(
        ["sklearn"], ours={"privfeat"}, lazy=["filelock", "jax", "matplotlib", "shtab"]
    ),
    "privfeat/analysis": rule(["sklearn"], ours={"privfeat"}, lazy=["matplotlib"]),
    "privfeat/report": rule(
        ["sklearn"], ours={"privfeat"}, lazy=["jinja2", "markupsafe", "matplotlib"]
    ),
    "privfeat/export": rule(
        ["sklearn"],
        ours={"privfeat"},
        lazy=["huggingface_hub", "mlflow", "onnx", "safetensors"],
    ),
    "privfeat/distributed.py": rule(ours={"privfeat.core"}, lazy=["jax"]),
    "privfeat/persistence": rule(["sklearn"], ours={"privfeat"}),
    "extract": rule(
        [
            *("PIL", "filelock", "h5py", "kymatio", "safetensors", "sklearn"),
            *("huggingface_hub", "sentence_transformers", "timm", "torch"),
            *("torchvision", "tqdm", "transformers"),
        ],
        ours=SHARED | {"privfeat._files", "privfeat.data", "privfeat_extract"},
        lazy=["shtab"],
    ),
}

# Imports that single files may make beside those of their folder.
ALSO_ALLOWED = {
    "privfeat/audit/one_run.py": {"jax_privacy"},
    "privfeat/export/networks.py": {"jax"},
    "privfeat/core/accounting/loss_grid.py": {"dp_accounting"},
    "privfeat/core/accounting/pld.py": {"dp_accounting"},
    "privfeat/core/accounting/rdp.py": {"dp_accounting"},
    "privfeat/core/statement/composition.py": {"dp_accounting"},
    "privfeat/core/ledger/stores/postgres_store.py": {"psycopg", "sqlalchemy"},
    "privfeat/core/statement/event_json.py": {"dp_accounting"},
    "privfeat/core/accounting/accountants.py": {"dp_accounting"},
    "privfeat/core/statement/selection.py": {"dp_accounting"},
    "privfeat/core/accounting/plan.py": {"dp_accounting"},
    "privfeat/core/statement/privacy_statement.py": {"dp_accounting"},
    "privfeat/solvers/optimizers.py": {"optax"},
}
# Standard modules that open a way around the design, and who may use them.
RESTRICTED = {
    "pickle": {"extract/weights.py"},  # for the name of an error that torch raises
    "random": set(),
    "secrets": {"privfeat/core/noise/keys.py"},
    "sqlite3": {"privfeat/core/ledger/stores/sqlite_store.py"},
}

# What audited files outside the core may import of its noise and its ledger. They are
# handed a mechanism: tests/core/test_private_fit.py holds that only `private_fit` makes
# one, and charges.
FROM_NOISE_AND_LEDGER = {
    "privfeat.core.ledger.privacy_ledger.PrivacyLedger",
    "privfeat.core.ledger.runs.newest_checkpoint",
    "privfeat.core.noise.exact.check_planned",
    "privfeat.core.noise.gaussian_mechanism.GaussianMechanism",
    "privfeat.core.noise.keys.KeyStream",
    "privfeat.core.noise.keys.SharedKeys",
    "privfeat.core.noise.keys.key_of",
    "privfeat.core.noise.observation.Sampler",
    "privfeat.core.noise.release.Release",
}
# These draw what is no noise: coins, a number of runs, and rows that try a bound.
DRAWING = {
    "privfeat/networks/training/adaptive.py",
    "privfeat/selection/runs.py",
    "privfeat/selection/search.py",
}
# The files beside them that audited files use, and why they are not audited.
NOT_AUDITED = {
    *(f"privfeat/{room}/__init__.py" for room in ("data", "metrics", "persistence")),
    *(f"privfeat/{room}/__init__.py" for room in ("networks/layers", "preprocessing")),
    # names, texts, parameters and documents: of no record
    "privfeat/_encoding.py",
    "privfeat/_version.py",
    "privfeat/data/networks.py",
    "privfeat/linear/parameters/docs.py",
    "privfeat/networks/docstrings.py",
    "privfeat/networks/timm_names.py",
    "privfeat/networks/training/defaults.py",
    "privfeat/persistence/model_folder.py",
    "privfeat/persistence/written.py",
    "privfeat/pipeline/view.py",
    # numbers made of releases, public facts and sizes
    "privfeat/_memory.py",
    "privfeat/linear/intervals.py",
    "privfeat/linear/parameters/prior.py",
    "privfeat/metrics/classification.py",
    "privfeat/metrics/intervals.py",
    "privfeat/metrics/regression.py",
    "privfeat/networks/training/memory.py",
    "privfeat/networks/training/optimizers.py",
    *(f"privfeat/solvers/{name}.py" for name in ("intercepts", "levels", "optimizers")),
    *(f"privfeat/solvers/{name}.py" for name in ("prior", "prior_least_squares")),
    *(f"privfeat/solvers/{name}.py" for name in ("public", "spectrum", "systems")),
    # checks: they refuse, or warn the owner, and hand on no record
    "privfeat/data/schema.py",
    "privfeat/data/sharing.py",
    "privfeat/data/splits.py",
    "privfeat/data/writing/writer.py",
    "privfeat/estimation/bases.py",
    "privfeat/estimation/names.py",
    "privfeat/selection/ahead.py",
}
