"""The Hive metastore over Derby, listening on one address only.

settings -> a JVM over PySpark's jars -> HMSHandler behind a Thrift server on `host:metastore_port`.
Who comes in must have the token of `home`/run/metastore.token, a file of Hadoop's (mode 0600).
Alone: `python -m infra.embedded.metastore`. It ends when the JVM ends, and the JVM ends when it ends.

Hive's own main class listens on every address and has no setting for it, so its three parts (handler, processor,
server) are put together here, through py4j, as HiveMetaStore.startMetaStore does. The login is the one that its clients
know beside Kerberos: SASL DIGEST-MD5 by a delegation token, here of a key that was generated, and without an end.
"""

import base64
import json
import os
import sys
import traceback

from py4j.java_gateway import GatewayParameters, JavaGateway, JavaObject, launch_gateway

from infra.embedded.passwords import passwords, write_private, write_private_bytes
from spark_jobs.settings import Settings, settings
from spark_jobs.storage.java import archived_classes, find_java
from spark_jobs.storage.session import CONF, spark_home

CLIENTS = 200
FOREVER = 2**63 - 1
USER = "tidemark"
HANDLER = "org.apache.hadoop.hive.thrift.HadoopThriftAuthBridge$Server$SaslDigestCallbackHandler"


def hive_properties(settings: Settings) -> dict[str, str]:
    """Hive's configuration: Derby below `home`, schema made on the first start."""
    return {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={settings.metastore_dir};create=true",
        "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
        "datanucleus.schema.autoCreateAll": "true",
        "datanucleus.connectionPoolingType": "HikariCP",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.warehouse.dir": settings.warehouse,
        "hive.metastore.uris": "",
        "hive.async.log.enabled": "false",
    }


def jvm(settings: Settings) -> JavaGateway:
    """A JVM with Hive's classes; its py4j door is on 127.0.0.1 behind a random token."""
    options = [
        f"-Xmx{settings.metastore_memory_mb}m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",  # it answers few questions, and starts faster so
        "-Duser.timezone=UTC",
        f"-Djava.io.tmpdir={settings.tmp_dir}",
        f"-Dderby.system.home={settings.tmp_dir}",
        f"-Dlog4j2.configurationFile={CONF / 'log4j2.properties'}",
        *archived_classes("metastore"),
    ]
    port, token = launch_gateway(
        classpath=f"{spark_home()}/jars/*",
        javaopts=options,
        java_path=str(find_java()),
        die_on_exit=True,
        enable_auth=True,
        redirect_stdout=sys.stdout,
        redirect_stderr=sys.stderr,
    )
    return JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))


def logins(gateway: JavaGateway, key: str) -> tuple[JavaObject, JavaObject]:
    """Hive's book of tokens, with the only one that there is: the same after each start, as its key is."""
    hive, hadoop = gateway.jvm.org.apache.hadoop.hive.thrift, gateway.jvm.org.apache.hadoop
    book = hive.DelegationTokenSecretManager(FOREVER, FOREVER, FOREVER, FOREVER)
    book.addKey(hadoop.security.token.delegation.DelegationKey(1, FOREVER, key.encode()))
    names = (hadoop.io.Text(USER) for _ in range(3))
    token = hive.DelegationTokenIdentifier(*names)
    token.setMasterKeyId(1)
    token.setMaxDate(FOREVER)
    book.addPersistedDelegationToken(token, FOREVER)
    return book, token


def write_logins(settings: Settings, gateway: JavaGateway, book: JavaObject, token: JavaObject) -> None:
    """Put the token down: for Hadoop's clients as a file of theirs, for ours as user and password."""
    hadoop, name, password = gateway.jvm.org.apache.hadoop, token.getBytes(), book.retrievePassword(token)
    kept = hadoop.security.token.Token(name, password, token.getKind(), hadoop.io.Text())
    every = hadoop.security.Credentials()
    every.addToken(hadoop.io.Text(USER), kept)
    written = gateway.jvm.java.io.ByteArrayOutputStream()
    every.writeTokenStorageToStream(gateway.jvm.java.io.DataOutputStream(written))
    write_private_bytes(settings.own_metastore_token, written.toByteArray())
    login = {"user": base64.b64encode(name).decode(), "password": base64.b64encode(password).decode()}
    write_private(settings.metastore_login, json.dumps(login))


def transport(gateway: JavaGateway, book: JavaObject) -> JavaObject:
    """Lets nobody through who is not in the book. Hive shows the handler to its own package alone."""
    made = gateway.jvm.java.lang.Class.forName(HANDLER).getConstructors()[0]
    made.setAccessible(True)
    arguments = gateway.new_array(gateway.jvm.java.lang.Object, 1)
    arguments[0] = book
    handler = made.newInstance(arguments)
    quality = {"javax.security.sasl.qop": "auth", "javax.security.sasl.server.authentication": "true"}
    factory = gateway.jvm.org.apache.thrift.transport.TSaslServerTransport.Factory
    return factory("DIGEST-MD5", None, "default", quality, handler)


def server(gateway: JavaGateway, properties: dict[str, str], address: tuple[str, int], door: JavaObject) -> JavaObject:
    """A TThreadPoolServer over Hive's handler, behind the `door`; `serve()` blocks."""
    hive, thrift = gateway.jvm.org.apache.hadoop.hive, gateway.jvm.org.apache.thrift
    conf = hive.conf.HiveConf()
    for key, value in properties.items():
        conf.set(key, value)
    handler = hive.metastore.HiveMetaStore.newRetryingHMSHandler(
        hive.metastore.HiveMetaStore.HMSHandler("tidemark", conf, False), conf
    )
    socket = thrift.transport.TServerSocket(gateway.jvm.java.net.InetSocketAddress(*address))
    arguments = thrift.server.TThreadPoolServer.Args(hive.metastore.TServerSocketKeepAlive(socket))
    arguments.processor(hive.metastore.api.ThriftHiveMetastore.Processor(handler))
    arguments.transportFactory(door)
    arguments.maxWorkerThreads(CLIENTS)
    return thrift.server.TThreadPoolServer(arguments)


def main() -> None:
    """Serve until killed; any error ends both processes, and the supervisor starts them anew."""
    settings().tmp_dir.mkdir(parents=True, exist_ok=True)
    gateway = jvm(settings())
    book, token = logins(gateway, passwords(settings())["metastore_key"])
    write_logins(settings(), gateway, book, token)
    address = (settings().host, settings().metastore_port)
    listening = server(gateway, hive_properties(settings()), address, transport(gateway, book))
    print(f"metastore listens on {settings().host}:{settings().metastore_port}", flush=True)
    try:
        listening.serve()
    except Exception:  # most often: the JVM is gone
        traceback.print_exc()
    os._exit(1)  # py4j's threads would keep the process


if __name__ == "__main__":
    main()
