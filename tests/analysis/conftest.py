import json
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent.parent / "golden"


@pytest.fixture(scope="session")
def golden_tan():
    return json.loads((GOLDEN / "tan.json").read_text(encoding="utf-8"))
