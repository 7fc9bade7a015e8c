"""How the parts are reached, and who logs in: addresses, ports, users, files of passwords and certificates."""

import json
from pathlib import Path
from typing import Literal

from pydantic import Field, computed_field, model_validator

from spark_jobs.settings.kinds import File, Natural, Port
from spark_jobs.settings.places import Places

EVERY_ADDRESS = ("0.0.0.0", "::", "")


class NoPassword(RuntimeError):
    """Nobody has made or named the password of a door; the text says what to do."""


class Doors(Places):
    """Parts listen on `host`, and are reached by `advertised_host`."""

    host: str = Field("127.0.0.1", description="The address that every part binds to.")
    advertised_host: str | None = Field(None, description="The name by which others reach the parts. Default: `host`.")

    kafka_port: Port = Field(19092, description="Kafka broker.")
    kafka_controller_port: Port = Field(19093, description="Kafka's KRaft controller.")
    metastore_port: Port = Field(19083, description="Hive metastore.")
    thrift_port: Port = Field(19000, description="Spark Thrift Server (JDBC, PyHive, BI tools).")
    query_port: Port = Field(19080, description="The read server: SQL and keys over HTTP.")
    query_flight_port: Port = Field(19081, description="The read server: Arrow Flight SQL (ADBC, JDBC).")
    metrics_port: Port = Field(19464, description="Metrics of the speed application, as text for Prometheus.")
    airflow_port: Port = Field(18080, description="Airflow's web UI and REST API.")

    kafka_servers: str | None = Field(None, description="Bootstrap servers of a Kafka elsewhere.")
    kafka_security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        "PLAINTEXT", description="How every client speaks to Kafka; the embedded broker does PLAINTEXT, SASL_PLAINTEXT."
    )
    kafka_sasl_mechanism: Literal["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"] = Field(
        "SCRAM-SHA-512", description="How a SASL protocol proves the password."
    )
    kafka_user: str = Field("tidemark", description="Who logs in at Kafka, where the protocol is a SASL one.")
    kafka_password_file: File | None = Field(None, description="File with the password; by default a generated one.")
    kafka_ca_file: File | None = Field(None, description="PEM: whose brokers' certificates are trusted (SSL).")
    kafka_certificate_file: File | None = Field(None, description="PEM: the client's certificate, if brokers ask.")
    kafka_key_file: File | None = Field(None, description="PEM: the key of that certificate, not encrypted.")
    kafka_allow_plaintext: bool = Field(False, description="Let profile `cluster` use PLAINTEXT.")
    kafka_outside: str | None = Field(
        None, description="host:port by which clients of another network reach the broker: a listener of its own."
    )
    metastore_uri: str | None = Field(None, description="thrift://host:port of a metastore elsewhere.")
    metastore_token_file: File | None = Field(
        None, description="Hadoop file with the token that a metastore elsewhere wants; none: it wants no login."
    )
    stale_read_ms: Natural = Field(
        0, description="How old a Delta snapshot a Thrift query may read, to save the look for a newer one."
    )
    thrift_host: str | None = Field(None, description="Host of a Thrift server elsewhere.")
    thrift_user: str = Field("tidemark", description="Who logs in at the Thrift server.")
    thrift_password_file: File | None = Field(None, description="File with the password; by default a generated one.")
    query_host: str | None = Field(None, description="Host of a read server elsewhere.")
    query_user: str = Field("tidemark", description="Who logs in at the read server.")
    query_password_file: File | None = Field(None, description="File with the password; by default a generated one.")
    query_certificate_file: File | None = Field(None, description="PEM: the read server's certificate; it speaks TLS.")
    query_key_file: File | None = Field(None, description="PEM: the key of that certificate, not encrypted.")
    query_ca_file: File | None = Field(None, description="PEM: whose certificate of a read server is trusted (TLS).")
    query_statements: int = Field(2, ge=1, description="Statements at once at the read server; others wait.")
    query_seconds: float = Field(60, gt=0, description="How long a statement of the read server may take.")
    query_rows: int = Field(1_000_000, ge=1, description="Rows that an answer of the read server has at most.")
    query_answer_mb: int = Field(256, ge=1, description="Size of an answer of the read server at most.")
    query_memory_mb: int = Field(512, ge=64, description="Memory that a statement of the read server may take.")
    airflow_host: str | None = Field(None, description="Host of an Airflow elsewhere.")
    airflow_public_url: str | None = Field(None, description="Airflow as browsers reach it, where they come by proxy.")
    ledger_url: str | None = Field(None, description="SQLAlchemy URL of the ledger; SQLite in `home` by default.")
    ledger_password_file: File | None = Field(None, description="File with the password for `ledger_url`.")
    otlp_endpoint: str | None = Field(None, description="URL of an OpenTelemetry collector that is sent the metrics.")
    airflow_database_url: str | None = Field(
        None, description="PostgreSQL URL of Airflow's database (password: PGPASSFILE); SQLite in `home` by default."
    )

    @model_validator(mode="after")
    def _reachable(self) -> "Doors":
        if self.own_name in EVERY_ADDRESS:
            raise ValueError(f"{self.own_name} is no name to reach a part by: set TIDEMARK_ADVERTISED_HOST beside it")
        return self

    def password(self, door: str) -> str:
        """The password with which `<door>_user` logs in: of the file that is set, else the generated one."""
        given: Path | None = getattr(self, f"{door}_password_file")
        if given is not None:
            return given.read_text(encoding="utf-8").rstrip("\r\n")
        if not self.secrets_file.exists():
            hint = f"`tidemark up` generates it; of a {door} elsewhere, TIDEMARK_{door.upper()}_PASSWORD_FILE names it"
            raise NoPassword(f"there is no password for {door}: {hint}")
        secret: str = json.loads(self.secrets_file.read_text(encoding="utf-8"))[f"{door}_password"]
        return secret

    @property
    def own_name(self) -> str:
        return self.advertised_host or self.host

    @computed_field  # type: ignore[prop-decorator]
    @property
    def kafka(self) -> str:
        return self.kafka_servers or f"{self.own_name}:{self.kafka_port}"

    @computed_field  # type: ignore[prop-decorator]
    @property
    def metastore(self) -> str:
        return self.metastore_uri or f"thrift://{self.own_name}:{self.metastore_port}"

    @property
    def metastore_token(self) -> Path | None:
        """Hadoop's file with the token by which clients of the metastore log in; None: it asks for none."""
        return self.metastore_token_file if self.metastore_uri else self.own_metastore_token

    @computed_field  # type: ignore[prop-decorator]
    @property
    def thrift(self) -> str:
        return self.thrift_host or self.own_name

    @property
    def query_url(self) -> str:
        """Where the commands and programs reach the read server."""
        scheme = "https" if self.query_certificate_file or self.query_ca_file else "http"
        return f"{scheme}://{self.query_host or self.own_name}:{self.query_port}"

    @computed_field  # type: ignore[prop-decorator]
    @property
    def airflow_url(self) -> str:
        """Where the other parts, and the commands, reach Airflow."""
        return f"http://{self.airflow_host or self.own_name}:{self.airflow_port}"

    @property
    def airflow_page(self) -> str:
        """Where people reach it."""
        return self.airflow_public_url or self.airflow_url
