"""The identity of a micro-batch: I4 (no hole, no overlap), I11 (old epochs), I14 (no silent loss)."""

import pytest

from spark_jobs.speed.continuity import EMPTY, LogEnd, Range, Stop, advance, next_lsn, recover, starting_offsets

IDS = {"orders": "id-1"}
END = LogEnd(lsn=7, epoch=2, offsets={("orders", 0): 100, ("orders", 1): 50}, topic_ids=IDS)


def test_a_micro_batch_that_starts_at_the_logs_end_takes_the_next_lsn():
    ranges = [Range("orders", 0, 100, 130), Range("orders", 1, 50, 50)]
    assert next_lsn(END, ranges, IDS, epoch=2) == 8
    after = advance(END, 8, ranges, IDS, epoch=2)
    assert after.offsets == {("orders", 0): 130, ("orders", 1): 50}
    assert after.lsn == 8


@pytest.mark.parametrize("start", [99, 101, 0])
def test_i4_a_hole_or_an_overlap_stops_the_stream_and_names_it(start):
    ranges = [Range("orders", 0, start, 130), Range("orders", 1, 50, 50)]
    with pytest.raises(Stop, match=r"orders partition 0: the log continues at offset 100"):
        next_lsn(END, ranges, IDS, epoch=2)


def test_i4_a_partition_that_is_left_out_stops_the_stream():
    with pytest.raises(Stop, match=r"\('orders', 1\)"):
        next_lsn(END, [Range("orders", 0, 100, 130)], IDS, epoch=2)


def test_i11_an_older_epoch_may_not_write():
    ranges = [Range("orders", 0, 100, 130), Range("orders", 1, 50, 50)]
    with pytest.raises(Stop, match="epoch 1 has ended"):
        next_lsn(END, ranges, IDS, epoch=1)


@pytest.mark.parametrize(("ids", "word"), [({"orders": "id-2"}, "was recreated"), ({}, "is gone")])
def test_i14_a_recreated_or_lost_topic_stops_the_stream(ids, word):
    ranges = [Range("orders", 0, 100, 130), Range("orders", 1, 50, 50)]
    with pytest.raises(Stop, match=word):
        next_lsn(END, ranges, ids, epoch=2)
    with pytest.raises(Stop, match=word):
        starting_offsets(END, {}, ids)


def test_a_new_partition_of_a_known_topic_starts_at_zero():
    ranges = [Range("orders", 0, 100, 100), Range("orders", 1, 50, 50), Range("orders", 2, 3, 5)]
    with pytest.raises(Stop, match="orders partition 2: the log continues at offset 0"):
        next_lsn(END, ranges, IDS, epoch=2)


def test_a_topic_never_seen_starts_wherever_kafka_still_has_it():
    assert next_lsn(EMPTY, [Range("orders", 0, 40, 41)], IDS, epoch=1) == 1
    assert starting_offsets(EMPTY, {("orders", 0): (40, 90)}, IDS) == {"orders": {"0": 40}}


def test_i14_retention_that_passed_the_log_stops_the_start_by_name():
    with pytest.raises(Stop, match=r"the log continues at offset 100, Kafka has \[120, 200\)"):
        starting_offsets(END, {("orders", 0): (120, 200), ("orders", 1): (0, 50)}, IDS)


def test_i14_a_log_that_is_ahead_of_kafka_stops_the_start_by_name():
    with pytest.raises(Stop, match=r"Kafka has \[0, 60\)"):
        starting_offsets(END, {("orders", 0): (0, 60), ("orders", 1): (0, 50)}, IDS)


def test_recovery_says_what_is_lost_and_goes_on_at_the_earliest_offset():
    available = {("orders", 0): (120, 200), ("orders", 1): (0, 50)}
    end, losses = recover(END, available, IDS)
    assert end.offsets == {("orders", 0): 120, ("orders", 1): 50}
    assert losses == ["orders partition 0: offsets from 100 on are lost; it goes on at 120"]
    assert starting_offsets(end, available, IDS) == {"orders": {"0": 120, "1": 50}}


def test_recovery_of_a_recreated_topic_takes_the_new_id():
    end, losses = recover(END, {("orders", 0): (0, 5), ("orders", 1): (0, 0)}, {"orders": "id-2"})
    assert end.topic_ids == {"orders": "id-2"}
    assert end.offsets == {("orders", 0): 0, ("orders", 1): 0}
    assert all("was recreated" in loss for loss in losses)
