"""Fits that clip and add no noise: never private, and never charged."""

import numpy as np
import pytest

from privfeat import DPSGDClassifier, PrivacyLedger, load, save
from privfeat.exceptions import PrivacyError, PrivacyWarning
from privfeat.persistence import load_predictor
from tests.combinations import few
from tests.networks.tiny import TINY

CLIPPED = TINY | {"noise_multiplier": 0, "expected_batch_size": None, "n_iter": 1}


@pytest.mark.parametrize("how", few(1, [{}, {"clipping": "adaptive"}]))
@pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
def test_without_noise_the_sums_are_those_of_a_private_fit(records, released, how):
    params = CLIPPED | {"clip_norm": 1e-3} | how
    DPSGDClassifier(**params).fit(*records)
    DPSGDClassifier(**params | {"noise_multiplier": 1.0}).fit(*records)
    DPSGDClassifier(**params | {"noise_multiplier": None, "epsilon": np.inf}).fit(
        *records
    )
    assert np.array_equal(released[0], released[1])
    assert np.linalg.norm(released[0]) <= 30.0
    assert len(released[2]) <= len(released[1])
    assert not np.allclose(released[2], released[1][: len(released[2])])


def test_it_is_marked_as_not_private_wherever_it_goes(records, tmp_path):
    with pytest.warns(PrivacyWarning, match="epsilon should be at most 20 .* got inf"):
        clf = DPSGDClassifier(**CLIPPED).fit(*records)
    save(clf, tmp_path / "model")
    assert load_predictor(tmp_path / "model") is None  # which is of linear models
    for statement in (clf.privacy_, load(tmp_path / "model").privacy_):
        assert statement.epsilon == np.inf
        assert not statement.private
        assert "No privacy" in str(statement)
        assert statement.releases[0].noise_multiplier == 0.0
    assert clf.planned(30).epsilon == np.inf


@pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
def test_a_ledger_refuses_it(records, released, tmp_path):
    ledger = PrivacyLedger(tmp_path / "x", dataset="x", epsilon=500.0, delta=1e-5)
    with pytest.raises(PrivacyError, match="must have a finite epsilon"):
        DPSGDClassifier(**CLIPPED | {"ledger": ledger, "random_state": None}).fit(
            *records
        )
    assert not released
    assert not ledger.history


@pytest.mark.parametrize("params", [{"epsilon": 1.0}, {"epsilon": np.inf}])
def test_a_second_budget_is_refused(records, released, params):
    with pytest.raises(ValueError, match="at most one budget"):
        DPSGDClassifier(**CLIPPED | params).fit(*records)
    assert not released
