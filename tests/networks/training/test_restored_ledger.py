"""A ledger that was put back from an older copy gives numbers again."""

import shutil

import pytest

from privfeat import PrivacyError, PrivacyLedger
from tests.networks.dying import make_charged

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


def test_a_charge_that_was_put_back_pays_for_no_interrupted_fit(
    tmp_path, records, interrupted
):
    path, kept = tmp_path / "x.ledger", tmp_path / "kept"
    ledger = PrivacyLedger(path, dataset="x", epsilon=500.0, delta=1e-5)
    shutil.copy(path, tmp_path / "older")
    interrupted(make_charged(kept, ledger), 1)
    finished = make_charged(None, ledger).fit(*records)
    shutil.copy(tmp_path / "older", path)
    ledger = PrivacyLedger(path, dataset="x")
    assert ledger.charge(finished.privacy_, estimator="DPSGDClassifier") == 1
    with pytest.raises(PrivacyError, match="charge 1 must be that of the interrupted"):
        make_charged(kept, ledger).fit(*records)
    (charge,) = ledger.history
    assert charge.statement == finished.privacy_
