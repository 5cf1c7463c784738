"""What of scikit-learn fits several times, a charge each, is refused by a ledger."""

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier, RegressorChain
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer

from privfeat import DPLeastSquares, HashKFold, TemperatureScaling
from privfeat.exceptions import PrivacyError
from privfeat.preprocessing import DPStandardScaler


@pytest.mark.filterwarnings("ignore:OneVsRestClassifier and its like read")
@pytest.mark.parametrize("fold", [None, 3, HashKFold(2)])
@pytest.mark.parametrize(
    "around",
    [
        lambda fit, cv: OneVsRestClassifier(fit),
        lambda fit, cv: OneVsOneClassifier(make_pipeline(FunctionTransformer(), fit)),
        lambda fit, cv: MultiOutputClassifier(fit),
        lambda fit, cv: ClassifierChain(fit, cv=cv),
        lambda fit, cv: RegressorChain(fit, cv=cv),
        lambda fit, cv: make_pipeline(OneVsRestClassifier(fit)),
    ],
    ids=["rest", "one", "outputs", "chain", "numbers", "pipeline"],
)
def test_ledger_refuses_several_fits_before_the_first(
    fit, ledger, labelled, around, fold
):
    """A later one may be refused, and then those before it are lost."""
    X, y = labelled
    model = around(fit, fold)
    several = not hasattr(model, "steps") and "multiclass" not in type(model).__module__
    with pytest.raises(PrivacyError, match=r"charged for one fit.*fit it itself"):
        model.fit(X, np.column_stack([y, 1 - y]) if several else y)
    assert ledger.history == []


@pytest.mark.parametrize(
    "around",
    [
        make_union,
        lambda one, two: ColumnTransformer([("a", one, [0]), ("b", two, [1])]),
    ],
    ids=["union", "columns"],
)
def test_ledger_refuses_private_steps_side_by_side(ledger, labelled, around):
    given = {"bounds": (-1, 1), "rho": 0.005, "ledger": ledger}
    one, two = (DPStandardScaler(**given) for _ in range(2))
    with pytest.raises(PrivacyError, match=r"several private steps.*PrivatePipeline"):
        around(one, two).fit(labelled[0])
    assert ledger.history == []
    frozen = FrozenEstimator(one.fit(labelled[0][:, :1]))
    ColumnTransformer([("a", frozen, [0]), ("b", two, [1])]).fit(labelled[0])
    assert len(ledger.history) == 2


def test_a_step_with_a_fitted_model_in_it_is_one_private_step(ledger, labelled):
    model = DPLeastSquares(rho=0.005, classes=[0, 1], ledger=ledger).fit(*labelled)
    scaled = TemperatureScaling(model, epsilon=0.1, ledger=ledger)
    make_pipeline(FunctionTransformer(), scaled).fit(*labelled)
    assert len(ledger.history) == 2
