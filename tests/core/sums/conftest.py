import jax
import pytest


@pytest.fixture
def accelerator(monkeypatch):
    """Compute as on an accelerator, in calls that are as large."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
