"""What MLflow keeps of a model is what a statement covers."""

import pytest

from privfeat import DPFC, PublicColumns, load, save
from privfeat._types import STAYS_AT_HOME
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.exceptions import PrivacyWarning

pytest.importorskip("mlflow", reason="pip install 'privfeat[mlflow]'")
pytestmark = pytest.mark.filterwarnings("ignore")  # of mlflow, about its own stores


@pytest.fixture
def store(tmp_path, monkeypatch):
    """Return the address of a store in a folder."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    return (tmp_path / "runs").as_uri()


def logged(folder, store, **options):
    from mlflow import MlflowClient

    from privfeat.export.mlflow import log_model

    run_id = log_model(folder, tracking_uri=store, **options)
    client = MlflowClient(tracking_uri=store)
    return client, client.get_run(run_id)


@pytest.fixture
def model(fit, tmp_path):
    with pytest.warns(match="random_state"):
        fitted = fit(DPFC, random_state=987654321)
    save(fitted, tmp_path / "model")
    return fitted


def test_log_model_logs_parameters_the_statement_and_the_files(model, tmp_path, store):
    report = tmp_path / "report.html"
    report.write_text("<p>A report</p>")
    client, run = logged(tmp_path / "model", store, report=report)
    params = run.data.params
    assert params["estimator"] == "DPFC"
    assert params["epsilon"] == "5.0"
    assert not {*params} & {*STAYS_AT_HOME}
    assert run.data.metrics == {"epsilon": 5.0, "delta": 1e-5}
    assert run.info.status == "FINISHED"
    place = client.download_artifacts(run.info.run_id, "", str(tmp_path))
    found = (tmp_path / "privacy.json").read_text()
    assert PrivacyStatement.from_json(found) == model.privacy_
    assert (tmp_path / "report.html").read_text() == report.read_text()
    assert load(f"{place}/model").privacy_ == model.privacy_


def test_log_model_tells_neither_the_seed_nor_who_and_where(model, tmp_path, store):
    _, run = logged(tmp_path / "model", store)
    assert {*run.data.tags} <= {"privfeat_version", "mlflow.runName"}
    files = [path for path in (tmp_path / "runs").rglob("*") if path.is_file()]
    assert not any(b"987654321" in path.read_bytes() for path in files)


def test_log_model_warns_of_what_is_not_private(model, evaluate, tmp_path, store):
    evaluate(model, tmp_path / "model", epsilon=float("inf"))
    with pytest.warns(PrivacyWarning) as caught:
        logged(tmp_path / "model", store)
    told = [str(one.message) for one in caught if one.category is PrivacyWarning]
    assert [text.partition(" that leaves ")[0] for text in told] == [
        "a model",
        "an evaluation",
    ]


def test_log_model_adds_to_a_run_and_leaves_it_open(model, tmp_path, store):
    from mlflow import MlflowClient

    made = MlflowClient(tracking_uri=store).create_run("0").info.run_id
    _, run = logged(tmp_path / "model", store, run_id=made)
    assert run.info.run_id == made
    assert run.info.status == "RUNNING"


def test_log_model_names_parameters_of_steps(fit, tmp_path, store):
    from sklearn.pipeline import make_pipeline

    columns = {f"x{i}": {"kind": "numeric", "bounds": [-9, 9]} for i in range(4)}
    save(make_pipeline(PublicColumns(columns), fit(DPFC)), tmp_path / "model")
    _, run = logged(tmp_path / "model", store)
    assert run.data.params["dpfc__epsilon"] == "5.0"
    assert run.data.params["publiccolumns__estimator"] == "PublicColumns"
    assert len(run.data.params["publiccolumns__columns"]) <= 500


def test_log_model_makes_no_run_of_a_folder_without_model(tmp_path, store):
    from privfeat.export.mlflow import log_model
    from privfeat.persistence import ModelFileError

    with pytest.raises(ModelFileError):
        log_model(tmp_path, tracking_uri=store)
    assert not (tmp_path / "runs").exists()
