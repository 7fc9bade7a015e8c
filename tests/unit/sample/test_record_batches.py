"""Record batches and partitions against kafka-python's own reader and partitioner."""

from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from spark_jobs.sample import record_batches

BYTES = st.none() | st.binary(max_size=300)
HEADERS = st.lists(st.tuples(st.text(max_size=5), st.binary(max_size=70)), max_size=3)


def read_back(data: bytes, count: int, timestamp: int) -> list:
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=0, is_transactional=False, producer_id=-1, producer_epoch=-1, base_sequence=-1,
        batch_size=1,
    )  # fmt: skip
    builder._buffer.extend(data)
    builder._num_records, builder._last_offset = count, count - 1
    builder._first_timestamp = builder._max_timestamp = timestamp
    batch = DefaultRecordBatch(bytes(builder.build()))
    assert batch.validate_crc()
    return [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in batch]


@given(st.lists(st.tuples(BYTES, BYTES), min_size=1, max_size=80), HEADERS)
def test_kafka_reads_back_what_was_encoded(records, headers):
    keys, values = zip(*records, strict=True)
    data = record_batches.encode(keys, values, record_batches.encoded_headers(headers))
    expected = [(i, 1700, key, value, headers) for i, (key, value) in enumerate(records)]
    assert read_back(data, len(records), 1700) == expected


def test_a_megabyte_and_more_than_65536_records_are_encoded():
    big = b"x" * (1 << 20)
    assert read_back(record_batches.encode([None], [big], record_batches.encoded_headers([])), 1, 0)[0][3] == big
    many = [b""] * 70_000
    assert len(read_back(record_batches.encode(many, many, record_batches.encoded_headers([])), len(many), 0)) == 70_000


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=50))
def test_keys_go_where_kafkas_default_partitioner_sends_them(keys):
    assert record_batches.murmur2(keys).tolist() == [murmur2(key) & 0xFFFFFFFF for key in keys]
    assert record_batches.partitions(keys, keys, 3).tolist() == [(murmur2(key) & 0x7FFFFFFF) % 3 for key in keys]


def test_a_record_without_key_goes_where_its_value_says_so_twice_the_same_way():
    values = [b"a", b"b", b"c", None]
    first = record_batches.partitions([None] * 4, values, 3).tolist()
    assert (
        first
        == record_batches.partitions([None] * 4, values, 3).tolist()
        == [(murmur2(v or b"") & 0x7FFFFFFF) % 3 for v in values]
    )
    assert len(set(first)) > 1
