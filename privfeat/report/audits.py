"""Whether an audit is of the estimator of a model, and how the two differ."""

import ast
from collections.abc import Mapping
from typing import Any

# What an audit sets for its own rows.
_LEFT_OUT = ("classes", "verbose")


def audited_in_words(audit: Mapping[str, Any], model: Any) -> str:
    """Return how the fits of an audit were made, beside that of a model.

    ``audit`` is what ``privfeat audit --out`` writes. ValueError if it is of another
    class than ``model``.
    """
    from privfeat.estimation.bases import described

    made, kind = audit.get("audited"), type(model).__name__
    if not isinstance(made, str):
        return "The audit does not say of which estimator it is."
    if made.partition("(")[0] != kind:
        raise ValueError(
            f"--audit must be of the estimator of the model, {kind}, got one of "
            f"another: {made.partition('(')[0][:80]!r}. Run `privfeat audit --model`."
        )
    found, own = _parameters(made), _parameters(described(model))
    if found is None or own is None:
        same = made == described(model)
        return (
            "" if same else "Their parameters may be others than those of this model."
        )
    names = sorted(k for k in {*found, *own} if found.get(k) != own.get(k))
    if not names:
        return "They had the parameters of this model."
    return (
        f"Their parameters were not all those of this model: other {', '.join(names)}."
    )


class _WithoutClasses(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        node.keywords = [one for one in node.keywords if one.arg not in _LEFT_OUT]
        return node


def _parameters(text: str) -> dict[str, str] | None:
    """Return the parameters of an estimator as it was printed; None if shortened."""
    try:
        call = _WithoutClasses().visit(ast.parse(text, mode="eval")).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(call, ast.Call) or call.args:
        return None
    return {str(one.arg): ast.dump(one.value) for one in call.keywords}
