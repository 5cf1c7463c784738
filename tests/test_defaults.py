"""The docstring of each public estimator and function argues its defaults.

The convention: the text of a parameter has a sentence with the word *default* and one
of `REASONS`. It says why the default is what it is, or that nothing was measured.
"""

import inspect
import re
from importlib import import_module

import pytest
from sklearn.base import BaseEstimator
from sklearn.model_selection import BaseCrossValidator

from privfeat.linear.intervals import RegressionIntervals

PACKAGES = (
    *("linear", "networks", "preprocessing", "recalibration", "selection"),
    *("pipeline", "metrics"),
)
REASONS = re.compile(r"\b(since|as(?! well)|see|RESULTS|measured)\b|for the sake of")
# What does nothing unless it is given, and so needs no reason.
OFF = {
    *("checkpoint_dir", "class_weight", "columns", "groups", "ledger"),
    *("max_group_size", "noise_multiplier", "on_step", "prior", "public", "rho"),
    *("verbose", "weights"),
}
NOTHING = (None, False, 0)
# After it a docstring has the texts of another one.
LIKE = "like all that follow"


def documented():
    """Yield names and objects: estimators, and functions with parameters."""
    for package in PACKAGES:
        module = import_module(f"privfeat.{package}")
        for name in module.__all__:
            thing = getattr(module, name)
            if isinstance(thing, type):
                chosen = issubclass(thing, BaseEstimator | BaseCrossValidator)
            else:
                chosen = inspect.isroutine(thing)
            if chosen and not inspect.isabstract(thing):
                yield name, thing
    yield "coef_interval", RegressionIntervals.coef_interval


THINGS = dict(documented())


def texts(thing):
    """Return the text below each parameter, and the names that another one tells."""
    doc = inspect.getdoc(thing)
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w+\n---|\Z)", doc, re.M | re.S)
    found, told = {}, set()
    parts = re.split(r"^([\w, ]+) :.*\n", section[1] if section else "", flags=re.M)
    for names, text in zip(parts[1::2], parts[2::2], strict=True):
        text = " ".join(text.split())
        names = names.split(", ")
        found.update(dict.fromkeys(names, text))
        if told or LIKE in text:
            told.update(names)
    return found, told


def argued(text):
    sentences = re.split(r"(?<=\.)\s+(?=[A-Z`*])", text)
    return any(
        re.search(r"\b[Dd]efaults?\b", each) and REASONS.search(each)
        for each in sentences
    )


def missing(thing):
    """Return the parameters whose defaults are not argued."""
    found, told = texts(thing)
    return [
        name
        for name, given in inspect.signature(thing).parameters.items()
        if given.default is not given.empty
        and not (name in OFF and any(given.default is off for off in NOTHING))
        and name not in told
        and not argued(found.get(name, ""))
    ]


def test_estimators_and_functions_are_found():
    assert {"DPFC", "DPSGDClassifier", "DPPCA", "HashKFold"} <= THINGS.keys()
    assert {"private_evaluation", "search_cost", "read_folder"} <= THINGS.keys()


@pytest.mark.parametrize("name", THINGS)
def test_each_default_is_argued(name):
    assert missing(THINGS[name]) == []


def test_a_default_without_a_reason_is_found():
    def fitted(first, second=1, third=2, fourth=None, *, ledger=None, public=True):
        """Fit.

        Parameters
        ----------
        second : int, default=1
            Default: 1, which is small. Others were not measured.
        third : int, default=2
            Default: 2, as in the paper.
        """

    assert missing(fitted) == ["second", "fourth", "public"]
