"""Steps get arrays; the pipeline compares the names of their parameters for them."""

import pandas as pd
import pytest
from sklearn.preprocessing import PolynomialFeatures

from privfeat import DPLeastSquares, PrivacyLedger, PrivatePipeline
from privfeat.preprocessing import DPStandardScaler, PublicColumns
from privfeat.selection import private_cross_val_score
from tests.pipeline.conftest import BOUNDS

NAMES = ["a", "b", "c"]
LOW, HIGH = (pd.Series(end, index=NAMES) for end in BOUNDS)
OTHER_ORDER = ["b", "a", "c"]
SCALE = ("scale", DPStandardScaler(bounds=(LOW[OTHER_ORDER], HIGH[OTHER_ORDER])))
pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
CLF = ("clf", DPLeastSquares(classes=[0, 1]))
MESSAGE = "must have the columns of X in their order"


@pytest.fixture
def table(columns):
    X, y = columns
    return pd.DataFrame(X, columns=NAMES), y


def declared():
    """Return three columns, in another order than the table has."""
    kinds = {n: {"kind": "numeric", "bounds": [LOW[n], HIGH[n]]} for n in OTHER_ORDER}
    return ("table", PublicColumns(kinds))


def test_fit_refuses_bounds_in_another_order(table, tmp_path):
    ledger = PrivacyLedger(tmp_path / "l", dataset="x", epsilon=9.0, delta=1e-4)
    with pytest.raises(ValueError, match=f"bounds {MESSAGE}"):
        PrivatePipeline([SCALE, CLF], ledger=ledger).fit(*table)
    assert not ledger.history


def test_fit_compares_with_the_names_that_a_step_gets(table):
    """A table in the order of the bounds comes from PublicColumns."""
    PrivatePipeline([declared(), SCALE, CLF], random_state=0).fit(*table)
    scale = ("scale", DPStandardScaler(bounds=(LOW, HIGH)))
    with pytest.raises(ValueError, match=MESSAGE):
        PrivatePipeline([declared(), scale, CLF], random_state=0).fit(*table)


def test_fit_follows_names_through_steps(table):
    scale = ("scale", DPStandardScaler(bounds=(LOW, HIGH)))
    more = ("more", PolynomialFeatures(2, include_bias=False))
    center = pd.Series(0.0, index=["a", "b", "c", "a^2", "a b", "a c", *"xyz"])
    for names, good in ((center.index, True), (center.index[::-1], False)):
        clf = ("clf", DPLeastSquares(classes=[0, 1], center=center[names]))
        model = PrivatePipeline([scale, more, clf], random_state=0)
        if good:
            model.fit(*table)
        else:
            with pytest.raises(ValueError, match=f"center {MESSAGE}"):
                model.fit(*table)


def test_folds_refuse_bounds_in_another_order(table):
    scale = ("scale", DPStandardScaler(bounds=(LOW, HIGH)))
    with pytest.raises(ValueError, match=MESSAGE):
        private_cross_val_score(
            PrivatePipeline([declared(), scale, CLF]), *table, epsilon=1.0
        )
    with pytest.raises(ValueError, match=MESSAGE):
        private_cross_val_score(PrivatePipeline([SCALE, CLF]), *table, epsilon=1.0)
