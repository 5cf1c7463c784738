"""How a fitted estimator shows its privacy in a notebook."""

from collections.abc import Callable
from html import escape
from typing import Any


class ShowsPrivacy:
    """Adds the privacy statement to scikit-learn's view of a fitted estimator.

    Stands left of ``BaseEstimator``. Both protocols of IPython are extended by their
    public names; ``repr`` and unfitted estimators stay as they are.
    """

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += self._privacy_html()
        return bundle

    @property
    def _repr_html_(self) -> Callable[[], str]:
        # For viewers that do not read bundles. Raises AttributeError where
        # scikit-learn is set to show text, which IPython takes for "no HTML".
        inner: Callable[[], str] = super()._repr_html_  # type: ignore[misc]
        return lambda: inner() + self._privacy_html()

    def _privacy_html(self) -> str:
        statement = getattr(self, "privacy_", None)
        if statement is None:
            return ""
        first, _, rest = str(statement).partition("\n")
        return (
            f"<details open><summary><b>{escape(first)}</b></summary>"
            f"<pre>{escape(rest)}</pre></details>"
        )
