"""Find the images that ``--data`` names: the one file that knows every reader."""

from collections.abc import Sequence
from pathlib import Path

from .archive import open_archive
from .digits import open_digits
from .errors import ExtractError
from .folder import open_folder
from .sources import Source
from .timm_data import open_timm


def open_source(
    data: str,
    *,
    data_dir: Path | None,
    splits: Sequence[str] | None,
    workspace: Path,
) -> Source:
    """Find the images that ``--data`` names.

    Parameters
    ----------
    data : str
        ``digits``, a folder, an archive, or a data set of timm (``torch/cifar10``).
    data_dir : Path or None
        Where timm's data sets are, or are downloaded to.
    splits : sequence of str or None
        Splits to extract; None takes those that are there.
    workspace : Path
        Folder for what has to be unpacked, the same for all processes.

    Raises
    ------
    ExtractError
        If there is no such data, or no image in it.
    """
    path = Path(data)
    if data == "digits":
        return open_digits(splits)
    if path.is_dir():
        return open_folder(path, splits, workspace)
    if path.is_file():
        return open_archive(path, splits, workspace)
    prefix = data.split("/", 1)[0].lower()
    if prefix in ("torch", "hfds", "hfids", "tfds", "wds") and "/" in data:
        return open_timm(data, data_dir, splits, workspace)
    raise ExtractError(
        "--data must be a folder, an archive, 'digits', or a data set such as "
        f"torch/cifar10 or hfds/uoft-cs/cifar10, got {data!r}. There is no such file."
    )
