from argparse import Namespace

import pytest

from privfeat.cli import build_parser
from privfeat.cli.shared import options


def parser_of(verb):
    (verbs,) = (
        a.choices for a in build_parser()._actions if "fit" in (a.choices or ())
    )
    return verbs[verb]


@pytest.mark.parametrize("verb", ["train", "audit", "sanity"])
def test_privacy_options_are_those_of_fit(verb):
    def described(verb):
        return {
            action.dest: (action.option_strings, action.type, action.help)
            for action in parser_of(verb)._actions
            if action.dest in options.PRIVACY
        }

    of_fit, found = described("fit"), described(verb)
    assert set(of_fit) == {*options.PRIVACY}
    assert set(of_fit) - set(found) == (
        {"rho", "accounting", "arithmetic"} if verb == "train" else set()
    )
    assert found.items() <= of_fit.items()


def test_privacy_options_have_no_default():
    """What is not given is left to the estimator."""
    args = build_parser().parse_args(["audit", "--estimator", "DPFC"])
    assert options.given(args, options.PRIVACY) == {}


def test_given_leaves_out_what_was_not_given():
    args = Namespace(delta=0.0, epsilon=None)
    assert options.given(args, ("delta", "epsilon", "rho")) == {"delta": 0.0}
