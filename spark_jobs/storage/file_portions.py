"""Read Parquet files a portion at a time, however slow whoever takes the rows is.

dataset -> files -> row groups that may hold wanted rows, some together -> Arrow batches.
A scan by pyarrow reads ahead of its reader, and `batch_readahead` does not bound it: of a file with forty row groups
all are in memory, decoded, when the reader needs long for the first. So each portion is a scan of its own.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.dataset as ds


def in_portions(
    source: ds.Dataset, rows: int, where: ds.Expression | None = None, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows that match, at most `rows` at a time; in memory is about that, or a row group of a file."""
    for file in source.get_fragments(where):
        wanted = file if where is None else file.subset(where, source.schema)
        for groups in _together(wanted.row_groups, rows):
            some = file.subset(row_group_ids=groups)
            yield from some.to_batches(source.schema, columns=columns, filter=where, batch_size=rows)


def _together(groups: Sequence[ds.RowGroupInfo], rows: int) -> Iterator[list[int]]:
    """The numbers of row groups that have about so many rows together."""
    some, size = list[int](), 0
    for group in groups:
        some.append(group.id)
        size += group.num_rows
        if size >= rows:
            yield some
            some, size = [], 0
    if some:
        yield some
