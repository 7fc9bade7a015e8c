"""The speed application: one query, one writer, from Kafka into the master log and the speed partials.

Kafka -> land -> partials, micro-batch by micro-batch. Run it alone: `python -m spark_jobs.speed`.
"""

import datetime as dt
import logging
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.revisions import Revision
from spark_jobs.contracts.schema_history import Entry, SchemaHistory
from spark_jobs.definitions.bound_view import View
from spark_jobs.engine.id_window import IdWindow
from spark_jobs.ledger import store as ledger
from spark_jobs.ledger import view_lock
from spark_jobs.messaging import consumer, security, topics
from spark_jobs.messaging.broker import Broker
from spark_jobs.registry.views import project_views
from spark_jobs.settings import settings
from spark_jobs.speed import catch_up, checkpoint, continuity, land, partials_table, recovery, sources, staged_facts
from spark_jobs.speed.alerts import Alerts
from spark_jobs.speed.catalog_names import NamesForReaders
from spark_jobs.speed.continuity import Range
from spark_jobs.speed.distributed import StagedBatch, take
from spark_jobs.speed.erase import Eraser
from spark_jobs.speed.housekeeping import Housekeeping
from spark_jobs.speed.in_process import InProcessWriter
from spark_jobs.speed.metrics import Metrics, offered
from spark_jobs.speed.partials_step import Batch, Outcome, process
from spark_jobs.speed.revise import Reviser
from spark_jobs.speed.status import Clock, Status
from spark_jobs.speed.watch import Watch
from spark_jobs.storage import fencing, tables
from spark_jobs.storage.fencing import Fence
from spark_jobs.storage.side_inputs import SideInputs

log = logging.getLogger("tidemark.speed")


class SpeedLayer:
    """The application and its state between micro-batches: the log's end, the known ids, the views set aside."""

    def __init__(self, spark: SparkSession, store: ledger.Store, broker: Broker) -> None:
        self.spark, self.store, self.broker = spark, store, broker
        self.views = list(project_views())
        self.window = IdWindow(settings().id_window_seconds, settings().id_window_max_ids)
        self.turn = threading.Lock()
        self.status = Status(store)
        self.alerts = Alerts(self.views, store, self.status)
        self.metrics = Metrics(self.status, store)
        self.beside = ExitStack()
        self.end = continuity.EMPTY
        self.history = SchemaHistory()
        self.fence: Fence
        self.in_process: InProcessWriter
        self.client: consumer.Client
        self.side_inputs: SideInputs

    def close(self) -> None:
        """End the threads beside the query."""
        self.alerts.close()
        self.beside.close()
        self.status.close()

    def prepare(self) -> None:
        """Make topics and tables, read the log's end, catch up with the log, and land new schemas."""
        self.beside.enter_context(offered(self.metrics, self.status))
        view_lock.check(self.store, self.views)
        in_force = land.create()
        partials_table.create(self.views)
        hot = (tables.path(tables.MASTER_LOG), tables.path(tables.SPEED_PARTIALS))
        self.fence = fencing.begin(hot, max(self.store.last_epoch(), land.log_end().epoch) + 1)
        self.end = land.log_end()  # once more: nobody but this application lands anything from now on
        self.store.record_epoch(self.fence.epoch, self.end.lsn)
        topics.create(project_contracts(), known=self.end.topic_ids)
        staged_facts.clear()
        self.beside.callback(NamesForReaders(self.store, self.status).close)
        self.beside.callback(Watch(self.store, self.status, lambda: self.end).close)
        self.history = in_force.with_new(self.end.lsn + 1)
        self.side_inputs = SideInputs(self.views, min(self._floors().values(), default=0), self.history)
        self.in_process = InProcessWriter(self.history, self.fence)
        self.status.set(state="catching up", epoch=self.fence.epoch, lsn=self.end.lsn)
        partials_table.restore_window(self.window, self.end.lsn)
        floors, decoded = self._floors(), self.store.decoded_cut()
        catch_up.catch_up(
            self.spark, self.views, floors, decoded, self.window, self.side_inputs, self.fence, self._caught_up
        )
        self.alerts.notify(self.end.lsn + 1, self.end.lsn)  # what the last life computed and did not send
        self._land_schemas()

    def _floors(self) -> dict[str, int]:
        """View column -> the cut of its current publication, up to which the batch build answers."""
        sources = self.store.current_sources()
        return {view.column: sources[view.id].cut for view in self.views if view.id in sources}

    def _caught_up(self, gap: catch_up.Gap, failed: Mapping[str, str]) -> None:
        first, last = gap.bounds
        log.info("caught up lsn %d-%d: %d records, views %s", first, last, sum(gap.counts.values()), sorted(gap.views))
        self.status.views_aside.update(failed)
        self.status.set(caught_up_to=last)
        self.alerts.notify(first, last, gap.views - failed.keys())

    def starting_offsets(self) -> checkpoint.Offsets:
        """Where the query starts: at the log's end, or past a hole that somebody accepted by `speed recover`."""
        topic_ids, partitions = self.broker.partitions()
        available = self.broker.available(partitions)
        try:
            start = continuity.starting_offsets(self.end, available, topic_ids)
        except continuity.Stop:
            if (accepted := recovery.accepted(self.store, continuity.losses(self.end, available, topic_ids))) is None:
                raise
            request_id, losses = accepted
            self.end = continuity.without(self.end, losses, topic_ids)
            start = continuity.starting_offsets(self.end, available, topic_ids)
            self._land_nothing(accepted_loss="; ".join(map(str, losses)))  # from it on the log follows the new offsets
            self.store.answer_request(request_id, {"lsn": self.end.lsn, "losses": [*map(str, losses)]})
        else:
            self.store.drop_requests(recovery.REQUEST, "nothing was lost at a start since")
        self.end = continuity.following(self.end, topic_ids)
        return start

    def _land_schemas(self) -> None:
        """The new schema versions come in force."""
        if new := self.history.within(self.end.lsn, self.end.lsn + 1):
            self._land_nothing(schemas=new)
            log.info("in force from lsn %d on: %s", self.end.lsn, ", ".join(entry.name for entry in new))

    def _revise(self, said: Sequence[Revision]) -> int:
        """Land what was said of single records; whatever comes after it is read by it. Returns the lsn."""
        said = [replace(one, lsn=self.end.lsn + 1) for one in said]
        try:
            self._land_nothing(said=said)
        except Exception:
            if land.log_end().lsn == self.end.lsn:
                raise
            log.exception("revisions have landed at lsn %d without partials; the next start makes them", said[0].lsn)
            os._exit(1)  # no micro-batch may go on as if they had not
        self._read_by(self.history.revised(said))
        self.status.set(lsn=self.end.lsn)
        log.info("lsn %d: %d revisions, the first %s of %s", self.end.lsn, len(said), said[0].action, said[0].place)
        return self.end.lsn

    def _land_nothing(
        self, schemas: Sequence[Entry] = (), accepted_loss: str | None = None, said: Sequence[Revision] = ()
    ) -> None:
        """Land a micro-batch without records."""
        ranges = [continuity.Range(t, p, offset, offset) for (t, p), offset in sorted(self.end.offsets.items())]
        control = land.control(self.fence.epoch, ranges, self.end.topic_ids, dt.datetime.now(dt.UTC))
        lsn, nothing = self.end.lsn + 1, row_types.RECORD.empty_table()
        self.in_process.land(nothing, lsn, {**control, "accepted_loss": accepted_loss}, schemas, said)
        self._process(self.in_process.decode(nothing, lsn), lsn, 0, dt.datetime.now(dt.UTC))
        self.end = continuity.advance(self.end, lsn, ranges, self.end.topic_ids, self.fence.epoch)

    def run(self) -> None:
        """Start the query and wait until it ends, by an exception or a stop."""
        self.start = self.starting_offsets()
        self.folder = checkpoint.fresh(self.fence.epoch)
        self.client = self.beside.enter_context(consumer.Client(security.native()))
        query = (
            sources.stream(self.spark, self.start)
            .writeStream.foreachBatch(self.micro_batch)
            .option("checkpointLocation", str(self.folder))
            .trigger(processingTime=f"{settings().trigger_ms} milliseconds")
            .start()
        )
        self.metrics.query = query
        self.status.set(state="running")
        reviser = Reviser(self.store, self.turn, lambda: self.history, self._revise)
        with Housekeeping(self.store, self.views, self.status, self.turn, self.fence, reviser.answer, self._erase):
            query.awaitTermination()

    def _erase(self, upto: int) -> int:
        """Take out of the hot tables, and of this process, what was erased up to an lsn; returns how many records."""
        erased = Eraser(self.turn, self.fence).erase(self.history.revisions, upto)
        with self.turn:
            self._read_by(replace(self.history, revisions=self.history.revisions.without(erased)))
            self.side_inputs = SideInputs(self.views, min(self._floors().values(), default=0), self.history)
        return len(erased)

    def _read_by(self, history: SchemaHistory) -> None:
        """Whatever comes is read by it."""
        self.history = self.in_process.history = self.side_inputs.history = history

    def micro_batch(self, batch: DataFrame, batch_id: int) -> None:
        """Land one micro-batch and compute its partials; an empty one too, as it moves the offsets on."""
        with self.turn:
            self.status.batch_begins()
            started_at = dt.datetime.now(dt.UTC)
            ranges = checkpoint.ranges(self.folder, batch_id, self.start)
            topic_ids, _ = self.broker.partitions()
            lsn = continuity.next_lsn(self.end, ranges, topic_ids, self.fence.epoch)
            sizes = continuity.sizes(ranges)
            control = land.control(
                self.fence.epoch, [*ranges, *self.end.remembered], {**self.end.topic_ids, **topic_ids}, started_at
            )
            clock = Clock()
            read = self._read(batch, ranges, lsn)
            clock.lap("read")
            count, decoded = self._land(read, lsn, control)
            clock.lap("land")
            outcome = self._process(decoded, lsn, count, clock.started_at)
            clock.lap("partials")
            self.end = continuity.advance(self.end, lsn, ranges, topic_ids, self.fence.epoch)
            self.status.views_aside.update(outcome.failed)
            self.status.batch(lsn, count, outcome.counts(lsn), clock.seconds, sizes, outcome.rejected())
            self.alerts.notify(lsn, lsn, {view.column for view in self._computed()})

    def _read(self, batch: DataFrame, ranges: Sequence[Range], lsn: int) -> pa.Table | StagedBatch:
        """In this process what is small, the rest by the workers; by Spark's source what only Java can read."""
        try:
            read = sources.few(self.client, ranges, lsn)
            return self._taken(sources.ByClient(self.spark, ranges, lsn)) if read is None else read
        except Exception as error:
            if not consumer.is_unreadable(error):
                raise
            log.warning("lsn %d is read by Spark's source, as the name of a header is no UTF-8", lsn, exc_info=True)
            return self._taken(sources.stamped(batch, lsn))

    def _land(self, read: pa.Table | StagedBatch, lsn: int, control: dict[str, object]) -> tuple[int, Batch]:
        """How many records have landed, and those records, decoded."""
        if isinstance(read, StagedBatch):
            land.commit(read.landed, read.records, lsn, control, self.fence)
            return read.records, read
        self.in_process.land(read, lsn, control)
        return read.num_rows, self.in_process.decode(read, lsn)

    def _taken(self, records: DataFrame | sources.ByClient) -> StagedBatch:
        """On the workers' disks, evaluated once: two reads could differ (compaction, retention)."""
        return take(records, self.history, self.fence, landed_on=dt.datetime.now(dt.UTC).date())

    def _process(self, batch: Batch, lsn: int, records: int, started_at: dt.datetime) -> Outcome:
        return process(batch, {lsn: records}, self._computed(), self.window, self.side_inputs, started_at)

    def _computed(self) -> list[View]:
        """The views that are not set aside."""
        return [view for view in self.views if view.column not in self.status.views_aside]
