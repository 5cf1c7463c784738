"""``privfeat report``: one HTML file about a saved model, and a model card."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privfeat.cli.common import CommandError, open_split, single_labels

if TYPE_CHECKING:
    from privfeat.analysis.metrics import CalibrationReport

_HIDDEN = {"format", "format_version", "complete"}


def add_parser(verbs: Any) -> None:
    """Add this verb to the parser of the command."""
    parser = verbs.add_parser(
        "report",
        help="write an HTML report and a model card of a saved model",
        description="Write one self-contained HTML file about a saved model: its "
        "privacy in words and symbols, accuracy and calibration, and where it is from.",
    )
    parser.set_defaults(run=run)
    parser.add_argument("model", metavar="DIR")
    parser.add_argument("--out", metavar="FILE.html", required=True)
    parser.add_argument(
        "--test",
        metavar="FILE[:SPLIT]",
        help="public rows to measure accuracy and calibration on",
    )
    parser.add_argument(
        "--features",
        metavar="FILE",
        help="feature file whose origin to describe (default: that of --test)",
    )
    parser.add_argument(
        "--ledger", metavar="FILE.json", help="a list of what was spent, as objects"
    )
    parser.add_argument(
        "--audit", metavar="FILE.json", help="an object of audit results"
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
    from privfeat.report.card import render_card
    from privfeat.report.html import FitReport, render_html

    estimator = persistence.load(args.model)
    statement = estimator.privacy_
    name = type(estimator).__name__
    report = FitReport(
        title=args.title or f"{name} with epsilon = {statement.epsilon:.4g}",
        statement=statement,
        calibration=_measured(args, estimator),
        test_name=Path(args.test).name if args.test else "",
        ledger=_ledger(args.ledger),
        audit=_audit(args.audit),
        provenance=_provenance(args),
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
    if not hasattr(estimator, "predict_proba") or estimator.multilabel_:
        raise CommandError("--test is for classifiers with one label a record.")
    split = open_split(args.test, preferred="test")
    return report_of(estimator, split.X, single_labels(split, args.test)[:])


def _provenance(args: argparse.Namespace) -> dict[str, Any] | None:
    from privfeat.cli.common import split_argument
    from privfeat.data import open_features

    source = args.features
    if source is None and args.test is not None:
        source, _ = split_argument(args.test)
    if source is None:
        return None
    found = open_features(source).metadata
    return {key: found[key] for key in sorted(found) if key not in _HIDDEN}


def _ledger(path: str | None) -> list[dict[str, Any]] | None:
    if path is None:
        return None
    found = _read_json(path, "--ledger")
    if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
        raise CommandError(f"--ledger must hold a list of objects, got {path!r}.")
    return found


def _audit(path: str | None) -> dict[str, Any] | None:
    if path is None:
        return None
    found = _read_json(path, "--audit")
    if not isinstance(found, dict):
        raise CommandError(f"--audit must hold an object, got {path!r}.")
    return found


def _read_json(path: str, option: str) -> Any:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise CommandError(f"{option} must be a JSON file, got {path!r}.") from error
