"""Saved models in MLflow: parameters, the statement, the files and the report."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from privfeat._checks import require
from privfeat._types import STAYS_AT_HOME
from privfeat._version import __version__
from privfeat.export.hub import files_of, warn_of_files
from privfeat.persistence.pipelines import read_steps

# MLflow's limit on a parameter.
_LONGEST = 500


def log_model(
    folder: str | os.PathLike[str],
    *,
    run_id: str | None = None,
    experiment_id: str = "0",
    report: str | os.PathLike[str] | None = None,
    tracking_uri: str | None = None,
) -> str:
    """Log a saved model to a run of MLflow.

    Parameters
    ----------
    folder : str or path-like
        What `privfeat.save`, ``privfeat fit`` or ``train`` wrote.
    run_id : str, optional
        Of a run that is there. By default a run is made and ended.
    experiment_id : str, default="0"
        Where a run is made.
    report : str or path-like, optional
        A file to log beside the model: what ``privfeat report`` wrote.
    tracking_uri : str, optional
        By default what ``MLFLOW_TRACKING_URI`` or `mlflow.set_tracking_uri` says.

    Returns
    -------
    run_id : str

    Raises
    ------
    ModelFileError
        If the folder holds no model, or a damaged one.
    ImportError
        If mlflow is missing: ``pip install 'privfeat[mlflow]'``.

    Warns
    -----
    PrivacyWarning
        If the statement of the model, or that of ``evaluation.json``, has no finite
        epsilon, or noise of a seed.

    Notes
    -----
    **Parameters** are those of the estimator, those of a pipeline as ``step__name``,
    without what stays at home. **Metrics** are ``epsilon`` and ``delta`` of the
    statement. **Artifacts** are ``model/``, which `privfeat.load` reads after a
    download, ``privacy.json`` and the report.

    A run that is made here has no tags of the person, the script or the machine, which
    `mlflow.start_run` writes: a run of your own, by ``run_id``, has them.

    Examples
    --------
    >>> log_model("model", report="report.html")  # doctest: +SKIP
    """
    require("log_model", "mlflow", extra="mlflow")
    from mlflow import MlflowClient

    steps, files = read_steps(folder), files_of(Path(folder))
    statement, _ = warn_of_files(folder)
    shown = None if report is None else Path(report).read_text(encoding="utf-8")
    client = MlflowClient(tracking_uri=tracking_uri)
    mine = run_id is None
    if run_id is None:
        run_id = str(client.create_run(experiment_id).info.run_id)
    for name, step in steps.items():
        prefix = f"{name}__" if name else ""
        client.log_param(run_id, f"{prefix}estimator", step.name)
        for key, value in step.params.items():
            if key not in STAYS_AT_HOME and value is not None:
                client.log_param(run_id, prefix + key, _short(value))
    client.set_tag(run_id, "privfeat_version", __version__)
    for key in ("epsilon", "delta"):
        client.log_metric(run_id, key, getattr(statement, key))
    client.log_text(run_id, statement.to_json(), "privacy.json")
    with TemporaryDirectory() as copies:  # of these files alone
        for name, content in files.items():
            Path(copies, name).write_bytes(content)
        client.log_artifacts(run_id, copies, "model")
    if shown is not None:
        client.log_text(run_id, shown, Path(str(report)).name)
    if mine:
        client.set_terminated(run_id)
    return run_id


def _short(value: Any) -> str:
    text = repr(value) if not isinstance(value, str) else value
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
