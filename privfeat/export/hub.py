"""A saved model on the Hugging Face hub, with its card."""

import fnmatch
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from privfeat._checks import require
from privfeat._version import __version__
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.core.statement.rounding import rounded_up
from privfeat.export.parts import warn_of_exposed
from privfeat.metrics.files import load_evaluation
from privfeat.persistence import load_statement
from privfeat.persistence.model_folder import DOCUMENT, EVALUATION, read_document
from privfeat.persistence.pipelines import read_steps


@dataclass(frozen=True)
class Upload:
    """What leaves for the hub.

    Attributes
    ----------
    repo_id : str
    private : bool
        Whether the repository is visible to its owners alone.
    files : dict of str to bytes
        By their names in the repository.
    statement : PrivacyStatement
        Of the model.
    evaluation : PrivacyStatement or None
        Of ``evaluation.json``, for the test records; None without one.
    """

    repo_id: str
    private: bool
    files: Mapping[str, bytes]
    statement: PrivacyStatement
    evaluation: PrivacyStatement | None = None

    def __str__(self) -> str:
        """Return what leaves, for whom, and what covers it."""
        seen = "its owners alone" if self.private else "everyone"
        files = [f"  {name} ({len(file)} bytes)" for name, file in self.files.items()]
        told = [
            f"The statement of {what}: epsilon = {rounded_up(statement.epsilon, 4)}, "
            f"delta = {rounded_up(statement.delta, 3)}."
            for what, statement in (
                ("the model", self.statement),
                ("the evaluation", self.evaluation),
            )
            if statement is not None
        ]
        return "\n".join([f"To {self.repo_id}, visible to {seen}:", *files, *told])


def push_to_hub(
    folder: str | os.PathLike[str],
    repo_id: str,
    *,
    card: str | os.PathLike[str],
    private: bool = True,
    dry_run: bool = False,
    token: str | None = None,
    endpoint: str | None = None,
) -> Upload:
    """Put a saved model and its card into a repository of the hub, in one commit.

    Parameters
    ----------
    folder : str or path-like
        What `privfeat.save`, ``privfeat fit`` or ``train`` wrote.
    repo_id : str
        ``"owner/name"``; made if it is not there.
    card : str or path-like
        The model card, which becomes ``README.md``: ``privfeat report --card`` writes
        it. Read it before it leaves.
    private : bool, default=True
        Whether its owners alone see the repository. A model that left cannot be called
        back, so that everyone sees it only if you say so.
    dry_run : bool, default=False
        Whether to return what would leave, and connect to nothing.
    token : str, optional
        By default what ``hf auth login`` or ``HF_TOKEN`` says.
    endpoint : str, optional
        Address of another hub than huggingface.co.

    Returns
    -------
    upload : Upload
        Print it: the files, for whom, and what the statement allows.

    Raises
    ------
    ModelFileError
        If the folder holds no model, or a damaged one.
    ValueError
        If the card is empty or of another model, or ``private`` is True and the
        repository is visible to everyone.
    ImportError
        If huggingface_hub is missing: ``pip install 'privfeat[hub]'``.

    Warns
    -----
    PrivacyWarning
        If the statement of the model, or that of ``evaluation.json``, has no finite
        epsilon, or noise of a seed.

    Notes
    -----
    The files are ``model.json``, its arrays, ``evaluation.json`` if it is there, and
    the card. Nothing else in the folder leaves. The commit takes away arrays and an
    evaluation of an earlier model. The statement covers what they say of
    records; the hub also learns who you are, your address and versions of software.

    Examples
    --------
    >>> print(push_to_hub("model", "me/flowers", card="card.md", dry_run=True))
    ... # doctest: +SKIP
    """
    require("push_to_hub", "huggingface_hub", extra="hub")
    text = Path(card).read_bytes()
    if not text.strip():
        raise ValueError(f"card must not be empty, got {str(card)!r}.")
    files = {"README.md": text, **files_of(Path(folder))}
    if hashlib.sha256(files[DOCUMENT]).hexdigest().encode() not in text:
        raise ValueError(
            f"card must be of this model: it must name the SHA-256 of {DOCUMENT}, got "
            f"{str(card)!r}. Write it with `privfeat report --card`."
        )
    upload = Upload(repo_id, private, files, *warn_of_files(folder))
    if dry_run:
        return upload
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi

    api = HfApi(endpoint=endpoint, token=token, library_name="privfeat")
    api.create_repo(repo_id, private=private, exist_ok=True)
    repo = api.model_info(repo_id)
    if private and not repo.private:
        raise ValueError(
            f"repo_id must be a private repository, but everyone sees {repo_id!r}. "
            "Pass private=False if the model may be public, or another name."
        )
    found = {file.rfilename for file in repo.siblings or ()}
    of_models = [EVALUATION, *fnmatch.filter(found, "arrays-*.npz")]
    earlier = sorted(found.intersection(of_models) - files.keys())
    api.create_commit(
        repo_id,
        [
            *(CommitOperationAdd(name, content) for name, content in files.items()),
            *map(CommitOperationDelete, earlier),
        ],
        commit_message=f"Add a model of privfeat {__version__}",
    )
    return upload


def files_of(folder: Path) -> dict[str, bytes]:
    """Return the files of a saved model by their names, after they were checked."""
    read_steps(folder)
    names = [DOCUMENT, str(read_document(folder)["arrays"]["file"])]
    if (folder / EVALUATION).exists():
        load_evaluation(folder)
        names.append(EVALUATION)
    return {name: (folder / name).read_bytes() for name in names}


def warn_of_files(
    folder: str | os.PathLike[str],
) -> tuple[PrivacyStatement, PrivacyStatement | None]:
    """Return the statements of a model and of its evaluation, after a warning."""
    stated, evaluated = load_statement(folder), load_evaluation(folder)
    warn_of_exposed("a model", stated)
    if evaluated is None:
        return stated, None
    of_tests = evaluated[0].privacy
    warn_of_exposed("an evaluation", of_tests)
    return stated, of_tests
