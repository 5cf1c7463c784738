"""Records as they come, made into features by public facts alone."""

from privfeat.preprocessing.columns_file import (
    draft_columns,
    plain_columns,
    read_columns,
)
from privfeat.preprocessing.public_columns import PublicColumns

__all__ = ["PublicColumns", "draft_columns", "plain_columns", "read_columns"]
