"""Private scaling of the columns of a table, before the model of a fit."""

from argparse import ArgumentParser, Namespace
from typing import Any

from privfeat.cli.shared.estimators import make_estimator
from privfeat.cli.shared.tables import Declared
from privfeat.cli.shared.terminal import CommandError

# What the steps share, and the pipeline is given.
_WHOLE = (
    *("epsilon", "delta", "rho", "adjacency", "accounting", "arithmetic"),
    *("max_group_size", "ledger", "random_state", "verbose"),
)
_REFUSED = ("noise_multiplier", "budget_split", "public")


def add_scale(parser: ArgumentParser) -> None:
    """Add ``--scale``."""
    what = (
        "with --columns: scale columns by their public bounds, or, for a ninth of "
        "rho, also by private means and variances (default public)"
    )
    parser.add_argument(
        "--scale", choices=("public", "private"), default="public", help=what
    )


def settings(args: Namespace, declared: Declared | None) -> dict[str, Any]:
    """Return parameters that suit the rows of a fit."""
    if declared is None:
        if args.scale == "private":
            raise CommandError("--scale private must be given together with --columns.")
        return {}
    if args.scale == "public":
        return declared.settings
    from privfeat.preprocessing import after_scaling

    return after_scaling(declared.n_features)


def make_pipeline(
    estimator: str, params: dict[str, Any], declared: Declared | None
) -> Any:
    """Return a pipeline of a private scaler and an estimator, with one budget."""
    from privfeat import PrivatePipeline
    from privfeat.preprocessing import DPStandardScaler

    assert declared is not None
    for name in _REFUSED:
        if params.get(name) is not None:
            raise CommandError(
                f"{name} must not be given with --scale private, which divides one "
                "budget. Pass --epsilon or --rho."
            )
    whole = {name: params[name] for name in _WHOLE if name in params}
    own = {name: value for name, value in params.items() if name not in whole}
    scaler = DPStandardScaler(bounds=declared.feature_bounds)
    return PrivatePipeline(
        [("scale", scaler), ("model", make_estimator(estimator, own))], **whole
    )
