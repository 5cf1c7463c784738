"""An example of each verb, at the end of its ``--help``.

Typed after ``make quickstart``, in this order, they work; tests run them.
"""

import argparse

_DIGITS = "quickstart/digits.h5"
EXAMPLES = {
    "privfeat doctor": "privfeat doctor",
    "privfeat quickstart": f"privfeat quickstart {_DIGITS} --out results/",
    "privfeat plan": "privfeat plan --n 10000 --d 2048 --classes 5 --epsilon 1",
    "privfeat tan": (
        "privfeat tan --n 50000 --batch-size 4096 --noise-multiplier 3 --steps 2500"
    ),
    "privfeat columns": "privfeat columns patients.csv --from-schema > columns.toml",
    "privfeat budget": "privfeat budget show team.ledger",
    "privfeat budget plan": (
        "privfeat budget plan --epsilon 3 --delta 1e-5 --fit epsilon=0.3,count=7"
    ),
    "privfeat budget create": (
        "privfeat budget create team.ledger --dataset digits --epsilon 3 --delta 1e-5"
    ),
    "privfeat fit": (
        f"privfeat fit --estimator DPFC --epsilon 1 --train {_DIGITS}:train "
        f"--ledger team.ledger --dataset digits --out model/"
    ),
    "privfeat budget show": "privfeat budget show team.ledger",
    "privfeat budget history": ("privfeat budget history team.ledger --dataset digits"),
    "privfeat budget serve": "privfeat budget serve team.ledger --out spending.html",
    "privfeat statement": "privfeat statement model/",
    "privfeat predict": (
        f"privfeat predict --model model/ --features {_DIGITS}:test --out labels.csv"
    ),
    "privfeat evaluate": (
        f"privfeat evaluate --model model/ --test {_DIGITS}:test --epsilon 0.5"
    ),
    "privfeat report": (
        "privfeat report model/ --ledger team.ledger --dataset digits --out report.html"
    ),
    "privfeat sanity": "privfeat sanity --estimator DPFC --epsilon 1",
    "privfeat audit": "privfeat audit --model model/ --n-samples 300 --out audit.json",
    "privfeat workflow": (
        f"privfeat workflow project/ --train {_DIGITS}:train --n 1400 --epsilon 1"
    ),
    "privfeat train": (
        "privfeat train --data images/ --model wrn_16_4 --epsilon 8 --out network/"
    ),
    "privfeat recipe": (
        "privfeat recipe results/ --public others/ --n 50000 --model wrn_16_4 "
        "--epsilon 8 --epochs 30 --batch 1024"
    ),
}


class Parser(argparse.ArgumentParser):
    """A parser whose help ends with the example of its verb."""

    def format_help(self) -> str:
        """Return the help; the example is one line, to be copied."""
        example = EXAMPLES.get(self.prog)
        shown = "" if example is None else f"\nexample:\n  {example}\n"
        return super().format_help() + shown
