"""What the work may take: memory, cores, and the sizes by which the stream is cut."""

from pydantic import BaseModel, Field

from spark_jobs.settings.kinds import Count, Natural, Time


class Work(BaseModel):
    """Sizes of processes, topics, micro-batches, spans and stretches."""

    cores: Count = Field(2, description="Spark cores (local) and shuffle partitions of each job.")
    speed_memory_mb: Count = Field(1536, description="Heap of the speed application.")
    thrift_memory_mb: Count = Field(2048, description="Heap of the Thrift server.")
    batch_memory_mb: Count = Field(2048, description="Heap of a batch job.")
    task_memory_mb: Count = Field(224, description="Memory of a batch task's engine; what exceeds it goes to disk.")
    check_memory_mb: Count = Field(2048, description="The same of an engine outside of tasks: audit, verify, explain.")
    server_java_options: str = Field(
        "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000"
        " -XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000",
        description="JVM options of the speed application and the Thrift server; the default has the optimising"
        " compiler spend its time only on what stays hot.",
    )
    batch_java_options: str = Field(
        "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseParallelGC",
        description="JVM options of a batch job; the default spares short jobs the optimising compiler.",
    )
    metastore_memory_mb: Count = Field(384, description="Heap of the embedded metastore.")
    kafka_memory_mb: Count = Field(512, description="Heap of the embedded broker.")

    topic_partitions: Count = Field(3, description="Partitions of a topic when it is created.")
    topic_retention_hours: Count = Field(168, description="Kafka's retention of topics that are not compacted.")

    max_records_per_batch: Count = Field(500_000, description="Kafka records that one micro-batch takes at most.")
    in_process_records: Natural = Field(
        50_000, description="Micro-batches up to this size stay in the driver's process."
    )
    in_process_mb: Natural = Field(64, description="So do at most so many bytes; larger ones go to the workers.")
    trigger_ms: Natural = Field(0, description="Least time between two micro-batches' starts; 0 = none.")
    span_seconds: Count = Field(120, description="Length of a span: speed partials of one span share files.")
    id_window_seconds: Count = Field(3600, description="How far back the speed layer knows event ids (duplicates).")
    id_window_max_ids: Count = Field(5_000_000, description="Most ids that the window holds; older ones leave first.")
    horizon_days: Time = Field(7, description="Rows of sequence views older than this enter with the next build.")
    stretch_max_rows: Count = Field(
        100_000, description="A key with more rows in a stretch is served as of the last build (sequence views)."
    )
    heartbeat_seconds: float = Field(1.0, gt=0, description="How often the speed application writes its heartbeat.")
