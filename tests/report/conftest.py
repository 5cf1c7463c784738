import math

import numpy as np
import pytest

from privfeat.analysis.calibration import calibration_report
from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.plan import Query
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.metrics.intervals import Estimate
from privfeat.report.html import FitReport
from privfeat.report.ledger import LedgerSummary


def state(*, seeded=False, sampling_prob=1.0, unit="record", **budget):
    """Return the statement of ten releases; epsilon 1 and delta 1e-6 by default."""
    accounting = "exact" if sampling_prob == 1.0 else "pld"
    query = Query("gradient", 1.0, count=10, sampling_prob=sampling_prob)
    budget = {"epsilon": 1.0, "delta": 1e-6, "accounting": accounting} | budget
    plan = plan_releases([query], **budget)
    facts = ("the number of features (4) <&>",)
    return PrivacyStatement.from_plan(plan, public=facts, seeded=seeded, unit=unit)


@pytest.fixture(scope="module")
def statement():
    return state()


@pytest.fixture(scope="module")
def full_report():
    """Return a report with every section, and markup in every text."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1.0] * 3, size=200)
    return FitReport(
        title="A <b>title</b> & more",
        statement=state(),
        date="2026-11-23 <&>",
        dataset="the <em>data</em>",
        responsible="Dr. <strong>Who</strong>",
        class_names=("<ill>", "well", "unknown"),
        recall=Estimate(np.array([0.5, 0.6, 0.7]), np.full(3, 0.25), np.full(3, 0.875)),
        calibration=calibration_report(rng.integers(0, 3, size=200), p),
        test_name="test.h5:<i>test</i>",
        ledger=LedgerSummary(
            budget=(
                ("data set", "a <b>set</b>"),
                ("budget", "epsilon = 3, delta = 1e-05"),
                ("spent", "epsilon = 0.5"),
            ),
            charges=({"fit": 1, "estimator": "fit <one>"}, {"fit": 2, "delta": 1e-6}),
            holds_fit=True,
        ),
        audit={
            "bound <lower>": 0.2,
            "inf": math.inf,
            "one_run": {"n_right": 7, "checks": [{"p_value": 0.5}, {"p_value": 0.25}]},
        },
        features="Each <tt>row</tt> became numbers.",
        columns=[
            {"column": "age <sub>", "kind": "number", "may be": "18 to 100 years"}
        ],
        checksums={"model.json": "0" * 64},
        provenance={"dataset": "<script>alert(1)</script>", "weights": ["a", 1]},
        reproduce="clf.fit(X < 3, y)",
    )
