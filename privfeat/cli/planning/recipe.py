"""``privfeat recipe``: find clip norm and learning rate of a network on public images.

The recipe of Kurakin et al. 2022, Section 3.3: the best rate without clipping; the
smallest clip norm that does not hurt without noise; at this norm, with the noise of the
private fit, the best rate; and the same product of rate and norm at other norms. Print
what was tried, what is best, and the command that trains with it. With --data, train on
the private images, charged to the ledger if there is one. DIR keeps each accuracy, and
the model: the same command goes on where it was stopped. For example

    privfeat recipe results --public OTHER-IMAGES --n 50000 --model wrn_16_4
    --epsilon 8 --epochs 30 --batch 4096 --data IMAGES --ledger private.ledger
    --dataset photos
"""

import json
import math
import shlex
from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import Any

from privfeat.cli import train
from privfeat.cli.shared import estimators, files, images, options, terminal
from privfeat.cli.shared.commands import (
    call,
    flags_of,
    paid_once,
    settings_of,
    words_of,
)
from privfeat.cli.shared.terminal import CommandError

_NOT_PRIVATE = """\
NOT PRIVATE: these settings were chosen on the private records of --data themselves. No
privacy statement covers that choice, neither one of this command nor that of a later
fit with them. Publish neither this output nor a model that was trained with them."""
_FIT = (
    *("model", "image_size", "epsilon", "noise_multiplier", "delta", "adjacency"),
    *("random_state", "epochs", "expected_batch_size"),
)


def add_parser(verbs: Any) -> None:
    """Add this verb to the parser of the command."""
    seen = images.options()
    parser = options.verb(verbs, run, seen, options.AS_JSON, *options.SET_AND_QUIET)
    add = parser.add_argument
    add("out", metavar="DIR", help="for the accuracies, and the model")
    records = parser.add_mutually_exclusive_group(required=True).add_argument
    public = "PUBLIC images to try on, as `train --data` names them, or a feature file"
    records("--public", metavar="DATA", help=public)
    records("--tune-on-private-records", action="store_true", help=_TUNE)
    add("--data", help="the PRIVATE images to train on at last, as for `train`")
    add("--n", type=int, required=True, help="number of private images, roughly")
    options.add_privacy(parser, linear=False)
    options.add_ledger(parser)
    options.add_length(parser)
    add = parser.add_argument_group("what is tried").add_argument
    rates = "without clipping (default 0.03 0.1 0.3 1)"
    add("--learning-rates", metavar="RATE", type=float, nargs="+", help=rates)
    norms = "without noise (default 0.01 0.03 0.1 0.3 1 3 10)"
    add("--clip-norms", metavar="NORM", type=float, nargs="+", help=norms)
    cost = "how much accuracy clipping may cost (default 0.02)"
    add("--tolerance", type=float, help=cost)
    add("--repeats", type=int, default=1, help="fits of each setting (default 1)")


_TUNE = (
    "NOT PRIVATE: try on the records of --data, and train no model. No statement "
    "covers what is chosen"
)


def run(args: Namespace) -> None:
    """Try, print, and train on the private images."""
    from privfeat import DPSGDClassifier
    from privfeat.analysis.tuning.clipping import clipping_recipe

    _check(args)
    for data in (args.data, args.public):
        images.check_outside(data, {"DIR": args.out})
    files.open_ledger(args)  # what is wrong with it is found before the trials
    tuned_on = args.data if args.tune_on_private_records else args.public
    given = Namespace(**vars(args) | {"public": tuned_on})
    if args.tune_on_private_records:
        terminal.warn(" ".join(_NOT_PRIVATE.split()))
    params: dict[str, Any] = {"optimizer": "heavy_ball"}
    params |= {"epsilon": 1.0} if _budget(args) == {} else {}
    params |= estimators.parameters(args)
    with files.output_folder(args.out) as folder:
        classes, data = images.public_records(given)
        rows = data[0].ndim == 2
        if rows and args.data is not None:
            raise CommandError(
                f"--public must hold images to train on those of --data, got features "
                f"in {args.public!r}. Leave out --data, and fit in Python."
            )
        found = clipping_recipe(
            estimators.make_estimator(
                DPSGDClassifier(), params | {"classes": range(classes)}
            ),
            *data,
            n_samples=args.n,
            n_repeats=args.repeats,
            path=folder / "recipe.json",
            progress=partial(terminal.progress, args),
            **options.given(args, ("learning_rates", "clip_norms", "tolerance")),
        )
        words = _training(args, found.chosen, params["optimizer"])
        print(_json(args, found) if args.json else _text(args, found, words, rows))
        if args.data is not None and not args.tune_on_private_records:
            _train(args, folder / "model", words)


def _budget(args: Namespace) -> dict[str, Any]:
    return options.given(args, options.BUDGETS)


def _check(args: Namespace) -> None:
    """Refuse what would try on private records unasked, before anything is read.

    And settings that the trials make, or that have an option, which `train` refuses.
    """
    taken = {"learning_rate", "clip_norm", *options.BUDGETS}
    named = next((one for one in args.set if one.partition("=")[0] in taken), None)
    if named is not None:
        raise CommandError(
            f"--set must leave alone what is tried, and what is an option, got {named}."
            " Pass --learning-rates, --clip-norms, or a budget such as --epsilon."
        )
    if args.tune_on_private_records:
        if args.data is None or args.ledger is not None:
            raise CommandError(
                "--tune-on-private-records must go with --data and without --ledger: "
                "nothing is charged, and no model is trained."
            )
        return
    if args.data is None:
        if args.ledger is not None:
            raise CommandError("--ledger must go with --data: nothing else is charged.")
        return
    if not Path(args.data).exists():
        raise CommandError(f"--data must be a folder or a file, got {args.data!r}.")
    images.check_apart("--public", args.public, Path(args.data))


def _training(args: Namespace, chosen: Any, optimizer: str) -> list[str]:
    """Return the words that train with the chosen setting, but for the data."""
    words = words_of(args, *_FIT)
    words += [] if _budget(args) else ["--epsilon", "1"]
    words += flags_of(args, "grey", "skip_bad")
    words += ["--learning-rate", f"{chosen.learning_rate:.6g}"]
    words += ["--clip-norm", f"{chosen.clip_norm:.6g}", *settings_of(args)]
    named = any(one.startswith("optimizer=") for one in args.set)
    return words if named else [*words, "--set", f"optimizer={optimizer}"]


def _train(args: Namespace, model: Path, words: list[str]) -> None:
    """Train on the private images, if this has not been done."""
    if (model / "model.json").exists():  # its budget is spent
        terminal.progress(args, f"trained before, see {model}")
        return
    given = ["--data", args.data, *words_of(args, "ledger", "dataset", "who")]
    quiet = ["--quiet"] if args.quiet or args.json else []
    with paid_once(model.parent, files.open_ledger(args), network=True) as kept:
        call(train, *given, *words, "--out", model, *kept, *quiet)


def _json(args: Namespace, found: Any) -> str:
    """Return all trials and the chosen one as JSON text."""
    rows = [{**one._asdict(), "accuracy": one.accuracy} for one in found.trials]
    for row in rows:
        if math.isinf(row["clip_norm"]):
            row["clip_norm"] = None
    chosen = {
        "clip_norm": found.chosen.clip_norm,
        "learning_rate": found.chosen.learning_rate,
        "noise_multiplier": found.chosen.noise_multiplier,
    }
    private = bool(args.tune_on_private_records)
    told = {"trials": rows, "chosen": chosen, "clipping_costs_little": found.close}
    return json.dumps(told | {"tuned_on_private_records": private}, indent=2)


def _text(args: Namespace, found: Any, words: list[str], rows: bool) -> str:
    """Return the trials as a table, with warnings and the command to train with."""
    lines = [
        f"{'':12} {'clip norm':>9} {'rate':>9} {'rate x norm':>11} {'noise':>7} "
        f"{'accuracy':>9}"
    ]
    for one in found.trials:
        clipped = math.isfinite(one.clip_norm)
        norm = f"{one.clip_norm:.4g}" if clipped else "none"
        product = f"{one.clip_norm * one.learning_rate:.4g}" if clipped else ""
        best = "  <- chosen" if one == found.chosen else ""
        lines.append(
            f"{one.step:12} {norm:>9} {one.learning_rate:9.4g} {product:>11} "
            f"{one.noise_multiplier:7.4g} {one.accuracy:9.4f}{best}"
        )
    lines += [f"warning: {sentence}" for sentence in _warnings(found)]
    # what private records chose is shown to their owner alone
    if not rows and not args.tune_on_private_records:
        data = "IMAGES" if args.data is None else args.data
        charged = words_of(args, "ledger", "dataset", "who")
        # a URL may hold a password
        charged = ["URL" if "://" in word else word for word in charged]
        command = ["privfeat", "train", "--data", data, *charged, *words]
        command += ["--out", "MODEL"]
        lines.append(f"train with it:\n{shlex.join(command)}")
    if args.tune_on_private_records:
        lines.append(_NOT_PRIVATE)
    return "\n".join(lines)


def _warnings(found: Any) -> list[str]:
    """Return what says that other values should be tried."""
    sentences = []
    plain = [trial for trial in found.trials if trial.step == "no clipping"]
    best = max(plain, key=lambda trial: trial.accuracy).learning_rate
    rates = [trial.learning_rate for trial in plain]
    if best in (min(rates), max(rates)):
        which = "smallest" if best == min(rates) else "largest"
        sentences.append(
            f"without clipping, the best rate is the {which} that was tried. Pass "
            "others as --learning-rates."
        )
    if not found.close:
        sentences.append(
            "without noise, every clip norm costs more than the tolerance. Pass larger "
            "--clip-norms."
        )
    return sentences
