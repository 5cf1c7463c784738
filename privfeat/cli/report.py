"""``privfeat report``: one HTML file about a saved model, and a model card."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privfeat.cli.common import CommandError, open_split, single_labels

if TYPE_CHECKING:
    from privfeat.analysis.metrics import CalibrationReport
    from privfeat.core.statement.privacy_statement import PrivacyStatement
    from privfeat.report.ledger import LedgerSummary

_LINEAR = "A linear model trained on features of a frozen network"
_NETWORK = "A network trained by DP-SGD"


def add_parser(verbs: Any) -> None:
    """Add this verb to the parser of the command."""
    parser = verbs.add_parser(
        "report",
        help="write an HTML report and a model card of a saved model",
        description="Write one self-contained HTML file about a saved model: its "
        "privacy in words and symbols, accuracy and calibration, and where it is from.",
    )
    parser.set_defaults(run=run)
    parser.add_argument(
        "model", metavar="DIR", help="a folder that `fit` or `train` wrote"
    )
    parser.add_argument(
        "--out", metavar="FILE.html", required=True, help="replaced if it exists"
    )
    parser.add_argument(
        "--test",
        metavar="FILE[:SPLIT]",
        help="public rows to measure accuracy and calibration on; of a trained "
        "network, a folder of images with CLASS/*.png",
    )
    parser.add_argument(
        "--features",
        metavar="FILE",
        help="feature file whose origin to describe (default: that of --test)",
    )
    parser.add_argument(
        "--ledger",
        metavar="LEDGER",
        help="show what was charged to a ledger, as `privfeat budget` makes one",
    )
    parser.add_argument(
        "--dataset", metavar="NAME", help="with --ledger: whose budget is shown"
    )
    parser.add_argument(
        "--audit", metavar="FILE.json", help="what `privfeat audit --out` wrote"
    )
    parser.add_argument("--title", help="default: the estimator and its budget")
    parser.add_argument("--card", metavar="FILE.md", help="write a model card as well")
    parser.add_argument(
        "--license", default="unknown", help="of the model, for the card"
    )


def run(args: argparse.Namespace) -> None:
    """Collect, render, write."""
    from privfeat import persistence
    from privfeat._files import write_atomically
    from privfeat.core.accounting.rounding import rounded_up
    from privfeat.report.card import render_card
    from privfeat.report.html import FitReport, check_packages, render_html

    check_packages()
    estimator = persistence.load(args.model)
    statement = estimator.privacy_
    name = type(estimator).__name__
    network = hasattr(estimator, "input_shape_")
    classifier = hasattr(estimator, "predict_proba")
    # what can be refused comes before what takes long
    ledger, audit = _ledger(args, statement), _audit(args.audit)
    provenance = _of_network(estimator) if network else _provenance(args)
    report = FitReport(
        title=args.title or f"{name} with epsilon = {rounded_up(statement.epsilon, 4)}",
        statement=statement,
        calibration=_measured(args, estimator),
        test_name=Path(args.test).name if args.test else "",
        ledger=ledger,
        audit=audit,
        provenance=provenance,
        kind=f"{_NETWORK if network else _LINEAR}, with differential privacy, by "
        "privfeat.",
        task="image-classification" if classifier else "tabular-regression",
        reproduce=f"pip install privfeat=={statement.version}\n\n"
        f"from privfeat import {name}\nclf = {estimator!r}.fit(X, y)",
    )
    write_atomically(Path(args.out), render_html(report).encode())
    print(f"{args.out} written")
    if args.card is not None:
        card = render_card(report, license_name=args.license)
        write_atomically(Path(args.card), card.encode())
        print(f"{args.card} written")


def _measured(args: argparse.Namespace, estimator: Any) -> "CalibrationReport | None":
    from privfeat.analysis.metrics import report_of

    if args.test is None:
        return None
    if not hasattr(estimator, "predict_proba") or getattr(
        estimator, "multilabel_", False
    ):
        raise CommandError("--test is for classifiers with one label a record.")
    if hasattr(estimator, "input_shape_"):
        return report_of(estimator, *_test_images(args, estimator.input_shape_))
    split = open_split(args.test, preferred="test")
    return report_of(estimator, split.X, single_labels(split, args.test)[:])


def _test_images(args: argparse.Namespace, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Return images and labels, as ``privfeat train`` reads them."""
    from privfeat.networks.images import read_folder
    from privfeat.persistence import load_class_names

    if len(shape) != 3 or shape[0] != shape[1] or shape[2] not in (1, 3):
        raise CommandError(f"--test is for networks of square images, got {shape}.")
    if not Path(args.test).is_dir():
        raise CommandError(f"--test must be a folder of images, got {args.test!r}.")
    mode = "L" if shape[2] == 1 else "RGB"
    X, y, names, _ = read_folder(args.test, size=shape[0], mode=mode)
    if load_class_names(args.model) not in (None, names):
        raise CommandError(f"{args.test} must have the classes of {args.model}.")
    return X, y


def _of_network(estimator: Any) -> dict[str, Any]:
    """Return what a trained network is."""
    sizes = [leaf.size for leaf in estimator.parameters_.values()]
    return {
        "network": estimator.model,
        "parameters": f"{sum(sizes):,}",
        "record": " x ".join(map(str, estimator.input_shape_)),
        "noisy steps": estimator.n_iter_,
        "optimizer": estimator.optimizer,
        "clip_norm": estimator.clip_norm,
        "augmentation": estimator.augmentation,
    }


def _provenance(args: argparse.Namespace) -> dict[str, Any] | None:
    from privfeat.cli.common import split_argument
    from privfeat.data import open_features

    source = args.features
    if source is None and args.test is not None:
        source, _ = split_argument(args.test)
    if source is None:
        return None
    # not metadata: numbers of records and digests of their names are for the owner
    found = open_features(source).origin
    return {key: value for key, value in found.items() if value not in (None, "")}


def _ledger(
    args: argparse.Namespace, statement: "PrivacyStatement"
) -> "LedgerSummary | None":
    from privfeat import PrivacyLedger
    from privfeat.report.ledger import summarize

    if (args.ledger is None) != (args.dataset is None):
        raise CommandError("--ledger and --dataset must be given together, got one.")
    if args.ledger is None:
        return None
    return summarize(PrivacyLedger(args.ledger, dataset=args.dataset), statement)


def _audit(path: str | None) -> dict[str, Any] | None:
    if path is None:
        return None
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise CommandError(f"--audit must be a JSON file, got {path!r}.") from error
    if not isinstance(found, dict):
        raise CommandError(f"--audit must hold an object, got {path!r}.")
    return found
