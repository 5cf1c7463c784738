import pytest
from sklearn.linear_model import LogisticRegression

from tests.metrics.drawn import draw


@pytest.fixture(scope="module")
def model():
    return LogisticRegression().fit(*draw(400))
