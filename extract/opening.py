"""Find what ``--data`` names: the one file that knows every reader."""

from pathlib import Path

from .archive import open_archive
from .arguments import Options
from .digits import open_digits
from .errors import ExtractError
from .folder import open_folder
from .sources import Source
from .text.source import open_texts
from .timm_data import KINDS_OF_TIMM, open_timm


def open_source(options: Options, workspace: Path) -> Source:
    """Find the images, or the texts, that ``--data`` names.

    That is ``digits``, a folder, an archive, or a data set of timm (``torch/cifar10``);
    with ``text`` a table or a folder of tables. What has to be unpacked goes to
    ``workspace``, the same for all processes. ExtractError if there is no such data, or
    no image in it.
    """
    data, splits = options.data, options.splits
    path = Path(data)
    if options.text:
        return open_texts(options)
    if data == "digits":
        return open_digits(splits)
    if path.is_dir():
        return open_folder(path, splits, workspace)
    if path.is_file():
        return open_archive(path, splits, workspace)
    prefix = data.split("/", 1)[0].lower()
    if prefix in KINDS_OF_TIMM and "/" in data:
        return open_timm(data, options.data_dir, splits, workspace)
    raise ExtractError(
        "--data must be a folder, an archive, 'digits', or a data set such as "
        f"torch/cifar10 or hfds/uoft-cs/cifar10, got {data!r}. There is no such file, "
        "and timm's streams (hfids/, tfds/, wds/) are not read."
    )
