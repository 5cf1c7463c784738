"""A ledger in a file whose locks other hosts may not see."""

import os
import warnings

import pytest

from privfeat import PrivacyLedger, PrivacyWarning
from privfeat.core.ledger.opening import find_datasets


@pytest.fixture
def on_disk_of(tmp_path, plant):
    """Let the folder of the ledger be on a file system of some type."""
    device = os.stat(tmp_path).st_dev

    def mount(kind, optional="shared:7 "):
        mounts = tmp_path / "mountinfo"
        mounts.write_text(
            "21 1 0:0 / /proc rw - proc proc rw\n"
            f"30 1 {os.major(device)}:{os.minor(device)} / /a\\040b rw "
            f"{optional}- {kind} host:/home rw\n"
        )
        plant("list of mounted disks", str(mounts))
        return tmp_path / "a.ledger"

    return mount


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "lustre", "fuse.sshfs", "virtiofs"])
def test_a_disk_of_several_hosts_is_named_before_anything_is_charged(on_disk_of, kind):
    path = on_disk_of(kind)
    with pytest.warns(PrivacyWarning, match=f"of type '{kind}': hosts") as caught:
        PrivacyLedger(path, dataset="a", epsilon=1.0, delta=1e-5)
    assert caught[0].filename == __file__
    with pytest.warns(PrivacyWarning, match=f"of type '{kind}': hosts"):
        assert PrivacyLedger(path, dataset="a").history == []


@pytest.mark.parametrize("optional", ["", "shared:7 ", "shared:7 master:2 "])
def test_the_type_of_a_disk_is_behind_any_number_of_fields(on_disk_of, optional):
    path = on_disk_of("nfs", optional)
    with pytest.warns(PrivacyWarning, match="of type 'nfs': hosts"):
        PrivacyLedger(path, dataset="a", epsilon=1.0, delta=1e-5)


@pytest.mark.parametrize("kind", ["ext4", "tmpfs", "overlay", "btrfs", "fuseblk"])
def test_a_disk_of_this_machine_is_not(on_disk_of, kind):
    path = on_disk_of(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PrivacyLedger(path, dataset="a", epsilon=1.0, delta=1e-5)
        assert find_datasets(path) == ["a"]


@pytest.mark.parametrize("content", [None, "", "21 1\n", "1 2 3 4 5 6 7 8\n"])
def test_a_system_that_says_nothing_is_left_alone(on_disk_of, tmp_path, plant, content):
    path = on_disk_of("nfs")
    plant("list of mounted disks", str(tmp_path / "other"))
    if content is not None:
        (tmp_path / "other").write_text(content)
    PrivacyLedger(path, dataset="a", epsilon=1.0, delta=1e-5)
