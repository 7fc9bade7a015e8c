"""The ledger's tables: every decision of the platform, in relational form.

Instants are UTC and time-zone aware; JSON columns hold plain dictionaries and lists. What is asked again and again has
an index, as decisions stay for years (see `forgetting`).
"""

from spark_jobs.ledger.schema.base import SCHEMA_VERSION, Base, Instant, Meta, now
from spark_jobs.ledger.schema.care import Alarm, Erasure, Verification
from spark_jobs.ledger.schema.publications import Pin, Publication, PublicationView, ServingView
from spark_jobs.ledger.schema.runs import Audit, Build, HotKey, Replay, Run, StoppedPlan, WaitingRun
from spark_jobs.ledger.schema.speed import AlertsSent, Epoch, Heartbeat, Lease, Request
from spark_jobs.ledger.schema.versions import Model, ModelPromotion, Promotion, ViewText

__all__ = [
    "MIRRORED",
    "SCHEMA_VERSION",
    "Alarm",
    "AlertsSent",
    "Audit",
    "Base",
    "Build",
    "Epoch",
    "Erasure",
    "Heartbeat",
    "HotKey",
    "Instant",
    "Lease",
    "Meta",
    "Model",
    "ModelPromotion",
    "Pin",
    "Promotion",
    "Publication",
    "PublicationView",
    "Replay",
    "Request",
    "Run",
    "ServingView",
    "StoppedPlan",
    "Verification",
    "ViewText",
    "WaitingRun",
    "now",
]

MIRRORED = tuple(sorted(Base.metadata.tables.keys() - {"meta", "leases"}))
"""What SQL readers see of the ledger, as tables of the schema `ops`."""
