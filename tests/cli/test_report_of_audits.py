"""A report shows the audit of the estimator of its model, and says what was other."""

import json

import pytest

OWN = "DPLeastSquares(classes=range(0, 4), delta=1e-06, epsilon=20.0)"


def words(model, tmp_path, audited):
    path = tmp_path / "audit.json"
    path.write_text(json.dumps({"audited": audited, "verdict": {}}))
    return ("report", model, "--out", tmp_path / "r.html", "--audit", path)


@pytest.mark.parametrize("audited", ["DPFC(epsilon=20.0)", "PrivatePipeline()", ""])
def test_audit_of_another_estimator_is_refused(fails, model, tmp_path, audited):
    message = fails(*words(model, tmp_path, audited))
    assert "--audit must be of the estimator of the model, DPLeastSquares" in message
    assert not (tmp_path / "r.html").exists()


@pytest.mark.parametrize(
    ("audited", "said"),
    [
        (OWN, "They had the parameters of this model."),
        (OWN.replace("20.0", "1.0"), "not all those of this model: other epsilon."),
        (OWN[:-1] + ", max_group_size=3)", "of this model: other max_group_size."),
        (OWN[:-1] + ",...)", "Their parameters may be others than those of this"),
        (None, "The audit does not say of which estimator it is."),
    ],
)
def test_report_says_what_was_other_in_an_audit(run, model, tmp_path, audited, said):
    assert run(*words(model, tmp_path, audited))[0] == 0
    assert said in (tmp_path / "r.html").read_text(encoding="utf-8")
