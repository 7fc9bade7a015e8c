"""The identity of a micro-batch: I4 (no hole, no overlap), I11 (old epochs), I14 (no silent loss)."""

import pytest

from spark_jobs.speed.continuity import (
    EMPTY,
    LogEnd,
    Loss,
    Range,
    Stop,
    advance,
    following,
    losses,
    next_lsn,
    starting_offsets,
    without,
)

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


def on(end: LogEnd, available: dict, ids: dict) -> tuple[LogEnd, list[str]]:
    """The end past what is lost, and the losses in words."""
    lost = losses(end, available, ids)
    return without(end, lost, ids), [str(loss) for loss in lost]


def test_recovery_says_what_is_lost_and_goes_on_at_the_earliest_offset():
    available = {("orders", 0): (120, 200), ("orders", 1): (0, 50)}
    end, said = on(END, available, IDS)
    assert end.offsets == {("orders", 0): 120, ("orders", 1): 50}
    assert said == ["orders partition 0 no longer has offsets from 100 on; it goes on at 120"]
    assert starting_offsets(end, available, IDS) == {"orders": {"0": 120, "1": 50}}


def test_a2_where_kafka_is_behind_the_log_nothing_is_landed_twice():
    available = {("orders", 0): (0, 90), ("orders", 1): (0, 50)}
    end, [said] = on(END, available, IDS)
    assert end.offsets[("orders", 0)] == 90, "not 0: the log has what Kafka still has"
    assert "ends before offset 100" in said and "goes on at Kafka's end, 90" in said
    assert starting_offsets(end, available, IDS) == {"orders": {"0": 90, "1": 50}}


def test_a2_the_offsets_of_a_topic_that_is_gone_stay_known():
    available = {("orders", 0): (0, 130), ("orders", 1): (0, 50)}
    end, said = on(END, {}, {})
    assert len(said) == 2 and all("is gone" in one for one in said)
    assert starting_offsets(end, {}, {}) == {} and losses(end, {}, {}) == []
    assert end.remembered == [Range("orders", 0, 100, 100), Range("orders", 1, 50, 50)]
    other = [Range("pages", 0, 0, 9)]
    landed = advance(end, next_lsn(end, other, {"pages": "id-9"}, epoch=2), other, {"pages": "id-9"}, epoch=2)
    available[("pages", 0)] = (0, 9)
    assert starting_offsets(landed, available, {**IDS, "pages": "id-9"}) == {
        "orders": {"0": 100, "1": 50},
        "pages": {"0": 9},
    }, "it was there all the time"
    assert not following(landed, IDS).gone
    with pytest.raises(Stop, match="was recreated"):
        starting_offsets(landed, available, {"orders": "id-2", "pages": "id-9"})


def test_a_topic_that_comes_back_while_the_query_does_not_read_it_stops_the_stream():
    end, _ = on(END, {}, {})
    pages = {"pages": "id-9"}
    back = advance(end, 8, [Range("pages", 0, 0, 9)], {**pages, **IDS}, epoch=2)
    with pytest.raises(Stop, match="says nothing of"):
        next_lsn(back, [Range("pages", 0, 9, 9)], {**pages, **IDS}, epoch=2)


def test_recovery_of_a_recreated_topic_takes_the_new_id():
    end, said = on(END, {("orders", 0): (0, 5), ("orders", 1): (0, 0)}, {"orders": "id-2"})
    assert end.topic_ids == {"orders": "id-2"}
    assert end.offsets == {("orders", 0): 0, ("orders", 1): 0}
    assert all("was recreated" in loss for loss in said)


def test_b2_a_topic_recreated_with_fewer_partitions_can_be_recovered():
    available, ids = {("orders", 0): (3, 5)}, {"orders": "id-2"}
    end, said = on(END, available, ids)
    assert end.offsets == {("orders", 0): 3}
    assert said[1] == "orders partition 1 is not in the recreated topic any more; the log followed it to offset 50"
    assert starting_offsets(end, available, ids) == {"orders": {"0": 3}}


def test_b2_a_partition_that_was_added_and_lost_its_first_records_is_named():
    available = {("orders", 0): (0, 100), ("orders", 1): (0, 50), ("orders", 2): (7, 9)}
    with pytest.raises(Stop, match="orders partition 2"):
        starting_offsets(END, available, IDS)
    end, said = on(END, available, IDS)
    assert said == ["orders partition 2 no longer has offsets from 0 on; it goes on at 7"]
    assert starting_offsets(end, available, IDS) == {"orders": {"0": 100, "1": 50, "2": 7}}


def test_b6_consent_is_to_a_hole_and_not_to_another_one():
    def lost(first: int, last: int) -> Loss:
        [loss] = losses(END, {("orders", 0): (first, last), ("orders", 1): (0, 50)}, IDS)
        return loss

    assert lost(120, 200).hole == lost(120, 900).hole, "Kafka's end moves on"
    assert lost(120, 200).hole != lost(150, 200).hole, "more is lost"
    assert lost(0, 90).hole == lost(0, 95).hole != lost(120, 200).hole
