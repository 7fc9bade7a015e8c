"""How every client of Kafka connects: where, by which protocol, with which login, trusting whom.

settings -> arguments of kafka-python's clients, options of Spark's Kafka source and of librdkafka. Passwords and keys
are read from their files here and go nowhere else: Kafka's clients and Spark hide these options in what they log.
"""

import re
import socket
import ssl
from typing import Any

from kafka.errors import AuthorizationError, TopicAuthorizationFailedError

from spark_jobs.settings import Settings, settings

BOOTSTRAP_SECONDS = 30.0
ASK_SECONDS = 5.0
SCRAM, PLAIN = "scram.ScramLoginModule", "plain.PlainLoginModule"


class KafkaRefused(RuntimeError):
    """Kafka cannot be reached, or lets this client in or do something not; the text says why and what to do."""


class InsecureKafka(KafkaRefused):
    """Profile `cluster` and a Kafka without login and encryption, which nobody has agreed to."""


def client(here: Settings | None = None) -> dict[str, Any]:
    """The arguments with which every client of kafka-python connects."""
    here = here or settings()
    arguments: dict[str, Any] = {"bootstrap_servers": here.kafka, "security_protocol": _protocol(here)}
    arguments["bootstrap_timeout_ms"] = BOOTSTRAP_SECONDS * 1000
    if _has_login(here):
        secret = {"sasl_plain_username": here.kafka_user, "sasl_plain_password": here.password("kafka")}
        arguments |= {"sasl_mechanism": here.kafka_sasl_mechanism, **secret}
    if _has_tls(here):
        own = {"ssl_certfile": here.kafka_certificate_file, "ssl_keyfile": here.kafka_key_file}
        files = {"ssl_cafile": here.kafka_ca_file, **own}
        arguments |= {name: str(file) for name, file in files.items() if file is not None}
    return arguments


def spark_options(here: Settings | None = None) -> dict[str, str]:
    """The options with which Spark's Kafka source connects. Workers need no file: its text is in the option."""
    here = here or settings()
    options = {"bootstrap.servers": here.kafka, "security.protocol": _protocol(here)}
    if _has_login(here):
        module = PLAIN if here.kafka_sasl_mechanism == "PLAIN" else SCRAM
        options["sasl.mechanism"] = here.kafka_sasl_mechanism
        options["sasl.jaas.config"] = login(module, here.kafka_user, here.password("kafka"))
    if _has_tls(here):
        if here.kafka_ca_file is not None:
            options |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": here.kafka_ca_file.read_text()}
        if here.kafka_certificate_file is not None and here.kafka_key_file is not None:
            chain, key = here.kafka_certificate_file.read_text(), here.kafka_key_file.read_text()
            own = {"ssl.keystore.certificate.chain": chain, "ssl.keystore.key": key}
            options |= {"ssl.keystore.type": "PEM", **own}
    return {f"kafka.{name}": value for name, value in options.items()}


def native(here: Settings | None = None) -> dict[str, str]:
    """The options with which clients of librdkafka connect. Workers need no file: its text is in the option."""
    here = here or settings()
    options = {"bootstrap.servers": here.kafka, "security.protocol": _protocol(here)}
    if _has_login(here):
        secret = {"sasl.username": here.kafka_user, "sasl.password": here.password("kafka")}
        options |= {"sasl.mechanism": here.kafka_sasl_mechanism, **secret}
    if _has_tls(here):
        own = {"ssl.certificate.pem": here.kafka_certificate_file, "ssl.key.pem": here.kafka_key_file}
        files = {"ssl.ca.pem": here.kafka_ca_file, **own}
        options |= {name: file.read_text() for name, file in files.items() if file is not None}
    return options


def login(module: str, user: str, password: str) -> str:
    """Kafka's Java programs take user and password as one line of JAAS."""
    modules = "org.apache.kafka.common.security"
    return f"{modules}.{module} required username={quoted(user)} password={quoted(password)};"


def quoted(text: str) -> str:
    """A string of JAAS."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _protocol(here: Settings) -> str:
    protocol = here.kafka_security_protocol
    if protocol == "PLAINTEXT" and here.profile == "cluster" and not here.kafka_allow_plaintext:
        raise InsecureKafka(
            f"Kafka at {here.kafka} would be used without login and encryption: set TIDEMARK_KAFKA_SECURITY_PROTOCOL"
            " (SASL_SSL, SSL, SASL_PLAINTEXT), or TIDEMARK_KAFKA_ALLOW_PLAINTEXT=true where its network is closed"
        )
    return protocol


def _has_login(here: Settings) -> bool:
    return here.kafka_security_protocol.startswith("SASL")


def _has_tls(here: Settings) -> bool:
    return here.kafka_security_protocol.endswith("SSL")


def why(error: Exception, topic: str | None = None) -> str:
    """What Kafka's refusal means, and what to do; `topic` is what it was about."""
    here = settings()
    who = f"User:{here.kafka_user}" if _has_login(here) else "this client"
    if isinstance(error, AuthorizationError):
        about = f"topic {topic}" if topic else f"this ({error})"
        return (
            f"Kafka at {here.kafka} does not allow {who} to use {about}: {type(error).__name__}. Its operator gives"
            " the right by an ACL: DESCRIBE, READ, DESCRIBE_CONFIGS, and WRITE for who sends"
        )
    return f"topic {topic}: {error!r}" if topic else _why_unreachable(here, error)


def explained(error: Exception) -> str:
    """The same of an exception of Spark, whose text has what Kafka's Java client said."""
    said = str(error)
    if denied := re.search(r"Not authorized to access topics: \[([^\]]+)\]", said):
        return why(TopicAuthorizationFailedError(), denied.group(1))
    if re.search(r"SaslAuthenticationException|SSLException|SslAuthenticationException|SSLHandshake", said):
        return _why_unreachable(settings(), error)
    return (said or repr(error)).splitlines()[0]


def _why_unreachable(here: Settings, error: Exception) -> str:
    """kafka-python tells only that it cannot connect; this looks where it ends: at the address, TLS, or the login."""
    host, _, port = here.kafka.split(",")[0].rpartition(":")
    at = f"Kafka at {here.kafka}"
    try:
        with socket.create_connection((host, int(port)), ASK_SECONDS) as bare:
            if _has_tls(here):
                _shake_hands(here, bare, host)
    except ssl.SSLCertVerificationError as refused:
        hint = "an expired one must be renewed there; TIDEMARK_KAFKA_CA_FILE says who is trusted"
        return f"{at}: the broker's certificate is not accepted, {refused.verify_message}; {hint}"
    except ssl.SSLError as refused:
        hint = "TIDEMARK_KAFKA_CERTIFICATE_FILE and TIDEMARK_KAFKA_KEY_FILE name the client's; has it expired?"
        return f"{at}: TLS fails, {refused.reason}; {hint}"
    except OSError as refused:
        return f"no Kafka at {here.kafka}: {refused}; `tidemark up` starts the embedded one"
    if not _has_login(here):
        hint = "does it want another TIDEMARK_KAFKA_SECURITY_PROTOCOL?"
        return f"{at} is there, and answers no request by {here.kafka_security_protocol} ({error!r}); {hint}"
    secret = here.kafka_password_file or here.secrets_file
    return (
        f"{at} does not let User:{here.kafka_user} in by {here.kafka_sasl_mechanism} ({error!r}): it does not know the"
        f" user, or the password in {secret} is wrong (TIDEMARK_KAFKA_USER, TIDEMARK_KAFKA_PASSWORD_FILE)"
    )


def _shake_hands(here: Settings, bare: socket.socket, host: str) -> None:
    """Both sides' certificates. A broker that refuses ours says so after the handshake, as the first thing it sends."""
    context = ssl.create_default_context(cafile=here.kafka_ca_file)
    if here.kafka_certificate_file is not None:
        context.load_cert_chain(here.kafka_certificate_file, here.kafka_key_file)
    with context.wrap_socket(bare, server_hostname=host) as secured:
        secured.settimeout(1)
        try:
            secured.recv(1)
        except TimeoutError:
            return  # it waits for a request: nothing is wrong
