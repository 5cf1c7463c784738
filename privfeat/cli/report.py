"""``privfeat report``: write an HTML report and a model card of a saved model.

Write one self-contained HTML file about a saved model: its privacy in words and
symbols, what was spent on the data set, accuracy and calibration, where it is from, the
checksums of its files, and a place to sign. Of private test records it shows what
`evaluate` found; of public ones, with --test and --test-is-public, exact figures.
For example

    privfeat report model --out report.html --ledger private.ledger --dataset photos
    --responsible "Dr. A. Example"
"""

import hashlib
import json
from argparse import Namespace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privfeat._types import FIRST_WEIGHTS, PUBLIC_ROWS
from privfeat.cli.shared import files, options
from privfeat.cli.shared.estimators import tested_of
from privfeat.cli.shared.saved import last_of, load_for_rows
from privfeat.cli.shared.terminal import CommandError
from privfeat.cli.shared.tested import check_public, tested_records

if TYPE_CHECKING:
    from privfeat.analysis.calibration import CalibrationReport
    from privfeat.metrics.intervals import Estimate
    from privfeat.metrics.measuring import Evaluation
    from privfeat.report.ledger import LedgerSummary

_LINEAR = "A linear model trained on features"
_FROZEN = f"{_LINEAR} of a frozen network"
_TABLE = "A linear model trained on columns of a table"
_NETWORK = "A network trained by DP-SGD"
_DATASET = "what the data set is called; with --ledger: the one whose budget it is"


def add_parser(verbs: Any) -> None:
    """Add this verb to the parser of the command."""
    parser = options.verb(verbs, run)
    options.add_ledger(parser, dataset=_DATASET, charges=False)
    add = parser.add_argument
    others = (
        "with --ledger: the data set that `evaluate` charged, for the test records; "
        "once more for records that a threshold, say, was chosen on"
    )
    add("--test-dataset", metavar="NAME", action="append", default=[], help=others)
    add("model", metavar="DIR", help="a folder that `fit` or `train` wrote")
    add("--out", metavar="FILE.html", required=True, help="replaced if it exists")
    rows = (
        "PUBLIC rows to measure exact figures on, with --test-is-public; of a trained "
        "network, a folder of images with CLASS/*.png"
    )
    add("--test", metavar="FILE[:SPLIT]", help=rows)
    options.add_public_test(parser)
    unseen = (
        "the rows of --test are in a split train, but not one that DIR was fitted on"
    )
    add("--unseen", action="store_true", help=unseen)
    features = "feature file whose origin to describe (default: that of --test)"
    add("--features", metavar="FILE", help=features)
    add("--audit", metavar="FILE.json", help="what `privfeat audit --out` wrote")
    add("--title", help="of the report (default: the estimator and its budget)")
    signs = "who answers for it, and signs"
    add("--responsible", metavar="NAME", default="", help=signs)
    add("--date", help="of the report (default: today)")
    add("--card", metavar="FILE.md", help="write a model card as well")
    add("--license", default="unknown", help="of the model, for the card")


def run(args: Namespace) -> None:
    """Collect, render, write."""
    from privfeat import persistence
    from privfeat.core.statement.rounding import rounded_up
    from privfeat.persistence.model_folder import DOCUMENT, EVALUATION, read_document
    from privfeat.persistence.pipelines import HASHING, read_steps
    from privfeat.persistence.saved_models import COLUMNS, PIPELINE
    from privfeat.report.audits import audited_in_words
    from privfeat.report.card import render_card
    from privfeat.report.columns import columns_of
    from privfeat.report.features import features_in_words, is_of_texts
    from privfeat.report.html import FitReport, check_packages, render_html
    from privfeat.report.ledger import summarize
    from privfeat.report.recipe import recipe_of
    from privfeat.report.words import shifts_of

    check_packages()
    document = read_document(args.model)
    *before, saved = read_steps(args.model).values()
    # declared columns alone are what the model's table says
    piped = document["estimator"] == PIPELINE or (
        [step.name for step in before] not in ([], [COLUMNS])
    )
    name = document["estimator"] if piped else saved.name
    network = bool(saved.parameters)
    estimator = None
    if piped or network or args.test is not None:
        estimator = load_for_rows(args.model)
    else:  # a second sooner: needs no scikit-learn
        persistence.load_predictor(args.model)
    statement = persistence.load_statement(args.model)
    made = persistence.load_origin(args.model)
    table = persistence.load_table(args.model)
    # what can be refused comes before what takes long
    check_public(args)
    names = persistence.load_class_names(args.model) or ()
    evaluated, on = None, ""
    if (Path(args.model) / EVALUATION).exists():  # else scikit-learn is not needed
        from privfeat.metrics.files import load_evaluation

        evaluated, on = load_evaluation(args.model) or (None, "")
    audit, audited = _audit(args.audit), ""
    if audit is not None:
        audited = audited_in_words(audit, tested_of(persistence.load(args.model)))
    # a data set may be named without one
    ledger = None if args.ledger is None else files.open_ledger(args)
    tested = _test_ledgers(args, evaluated)
    measured, recall, errors = _measured(args, estimator, made)
    origin = None if network or table is not None else _provenance(args, made)
    known = origin or {}
    frozen = "pooling" in known and known["model"] not in ("scattering", "ngrams")
    linear = _FROZEN if frozen else _LINEAR if table is None else _TABLE
    kind = _NETWORK if network else linear
    started = network and FIRST_WEIGHTS in statement.public
    hashed = before and before[0].name == HASHING
    hashes = {"model": "ngrams", "pooling": "none"}  # what a step makes of texts
    rows = hashes if hashed else origin
    report = FitReport(
        title=args.title or f"{name} with epsilon = {rounded_up(statement.epsilon, 4)}",
        statement=statement,
        date=args.date or date.today().isoformat(),
        dataset=args.dataset or "",
        responsible=args.responsible,
        class_names=names,
        ledger=None
        if ledger is None
        else summarize(ledger, statement, getattr(evaluated, "privacy", None)),
        test_ledgers=tested,
        features=features_in_words(
            rows,
            table=table is not None,
            network=network,
            frozen=bool(getattr(last_of(estimator), "frozen", None)),
            weights=started,
            steps=piped and not hashed,
        ),
        columns=() if table is None else columns_of(table),
        provenance=_of_network(last_of(estimator)) if network else origin,
        calibration=measured,
        recall=recall,
        errors=errors,
        test_name=Path(args.test).name if args.test else "",
        evaluation=evaluated,
        evaluated_on=on,
        audit=audit,
        audited=audited,
        kind=f"{kind}, with differential privacy, by privfeat.",
        task=_task(
            saved.classifier,
            images=table is None and (network or frozen),
            texts=table is None and is_of_texts(rows),
        ),
        checksums={
            file: hashlib.sha256(Path(args.model, file).read_bytes()).hexdigest()
            for file in (DOCUMENT, document["arrays"]["file"], EVALUATION)
            if file != EVALUATION or evaluated is not None
        },
        reproduce=recipe_of(
            name,
            saved.params,
            version=statement.version,
            unit=statement.unit,
            table=table,
            class_names=names,
            rows="images" if network else "features",
            weights=started,
            public=any(PUBLIC_ROWS in fact for fact in statement.public),
            pipeline=persistence.load(args.model) if piped else None,
            shifted=shifts_of(statement),
        ),
    )
    files.write_file(args.out, render_html(report).encode())
    if args.card is not None:
        card = render_card(report, license_name=args.license)
        files.write_file(args.card, card.encode())


def _test_ledgers(
    args: Namespace, evaluated: "Evaluation | None"
) -> "list[LedgerSummary]":
    """Return what was spent on each data set that ``--test-dataset`` names."""
    names = args.test_dataset
    if not names:
        return []
    from privfeat import PrivacyLedger
    from privfeat.report.ledger import summarize

    if args.ledger is None or len({args.dataset, *names}) <= len(names):
        raise CommandError(
            "--test-dataset must be given with --ledger, and be another data set than "
            f"--dataset, got {', '.join(map(repr, names))}."
        )
    if evaluated is None:
        raise CommandError(
            "--test-dataset is for models that `privfeat evaluate` has measured, got "
            f"{args.model}, which holds no evaluation. Measure it, or, of a copy that "
            "predicts the same, save what was found of its original beside it: "
            "privfeat.metrics.files.save_evaluation."
        )
    ledgers = [PrivacyLedger(args.ledger, dataset=name) for name in names]
    return [summarize(ledger, evaluated.privacy) for ledger in ledgers]


def _measured(
    args: Namespace, estimator: Any, made: dict[str, Any]
) -> "tuple[CalibrationReport | None, Estimate | None, dict[str, float] | None]":
    """Return calibration and recall, or errors, on public records."""
    if args.test is None:
        return None, None, None
    from privfeat.analysis.calibration import calibration_report
    from privfeat.report.evaluation import exact_errors, exact_recall

    X, y, _ = tested_records(args, estimator, made, public=True)
    if not hasattr(estimator, "predict_proba"):
        return None, None, exact_errors(y, estimator.predict(X))
    found, classes = estimator.predict_proba(X), estimator.classes_
    measured = calibration_report(y, found, classes=classes)
    return measured, exact_recall(y, found, classes), None


def _of_network(estimator: Any) -> dict[str, Any]:
    """Return what a trained network is."""
    size = sum(leaf.size for leaf in estimator.parameters_.values())
    return {
        "network": estimator.model,
        "parameters": f"{size:,}",
        "record": " x ".join(map(str, estimator.input_shape_)),
        "noisy steps": estimator.n_iter_,
        "optimizer": estimator.optimizer,
        "clip_norm": estimator.clip_norm,
        "augmentation": estimator.augmentation,
    }


def _task(classifier: bool, *, images: bool, texts: bool) -> str:
    """Return what a model is for, by the names of the Hugging Face hub."""
    if not classifier:
        return "tabular-regression"
    if texts:
        return "text-classification"
    return "image-classification" if images else "tabular-classification"


def _provenance(args: Namespace, made: dict[str, Any]) -> dict[str, Any] | None:
    """Return where the features are from, without numbers or names of records.

    What the model knows of the features that it was fitted to counts.
    """
    from privfeat.data.origin import NETWORK, PIXELS

    if args.features is not None:
        files.require_like(args.features, made, "--features")
    source, known = args.features or args.test, (*NETWORK, *PIXELS) if made else ()
    found = {} if source is None else files.origin(source)
    found = {name: found[name] for name in found.keys() - {*known}} | made
    return {k: v for k, v in sorted(found.items()) if v not in (None, "")} or None


def _audit(path: str | None) -> dict[str, Any] | None:
    """Return the JSON object of an audit; CommandError if the file holds none."""
    if path is None:
        return None
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise CommandError(f"--audit must be a JSON file, got {path!r}.") from error
    if not isinstance(found, dict):
        raise CommandError(f"--audit must hold an object, got {path!r}.")
    return found
