"""Where a ledger may be: paths and URLs."""

import pytest

from privfeat.core.ledger.opening import open_store
from privfeat.core.ledger.stores.file_store import FileStore


def test_a_path_is_made_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in ("a.ledger", b"a.ledger".decode(), tmp_path / "a.ledger"):
        store = open_store(path)
        assert isinstance(store, FileStore)
        assert str(store) == str(tmp_path / "a.ledger")


@pytest.mark.parametrize("scheme", ["postgresql+psycopg", "mysql", "file", "sqlite"])
def test_a_url_of_another_kind_is_no_file_and_is_not_shown(scheme, tmp_path):
    with pytest.raises(ValueError, match="got a URL of another kind") as caught:
        open_store(f"{scheme}://me:secret@host{tmp_path}")
    assert "secret" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
