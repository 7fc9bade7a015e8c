"""The Hive metastore over Derby, listening on one address only.

settings -> a JVM over PySpark's jars -> HMSHandler behind a Thrift server on `host:metastore_port`.
Alone: `python -m infra.embedded.metastore`. It ends when the JVM ends, and the JVM ends when it ends.

Hive's own main class listens on every address and has no setting for it, so its three parts (handler, processor,
server) are put together here, through py4j, as HiveMetaStore.startMetaStore does.
"""

import os
import sys
import traceback

from py4j.java_gateway import GatewayParameters, JavaGateway, JavaObject, launch_gateway

from spark_jobs.settings import Settings, settings
from spark_jobs.storage.java import archived_classes, find_java
from spark_jobs.storage.session import CONF, spark_home

CLIENTS = 200


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


def server(gateway: JavaGateway, properties: dict[str, str], host: str, port: int) -> JavaObject:
    """A TThreadPoolServer over Hive's handler; `serve()` blocks."""
    hive, thrift = gateway.jvm.org.apache.hadoop.hive, gateway.jvm.org.apache.thrift
    conf = hive.conf.HiveConf()
    for key, value in properties.items():
        conf.set(key, value)
    handler = hive.metastore.HiveMetaStore.newRetryingHMSHandler(
        hive.metastore.HiveMetaStore.HMSHandler("tidemark", conf, False), conf
    )
    socket = thrift.transport.TServerSocket(gateway.jvm.java.net.InetSocketAddress(host, port))
    arguments = thrift.server.TThreadPoolServer.Args(hive.metastore.TServerSocketKeepAlive(socket))
    arguments.processor(hive.metastore.TSetIpAddressProcessor(handler))
    arguments.maxWorkerThreads(CLIENTS)
    return thrift.server.TThreadPoolServer(arguments)


def main() -> None:
    """Serve until killed; any error ends both processes, and the supervisor starts them anew."""
    settings().tmp_dir.mkdir(parents=True, exist_ok=True)
    gateway = jvm(settings())
    listening = server(gateway, hive_properties(settings()), settings().host, settings().metastore_port)
    print(f"metastore listens on {settings().host}:{settings().metastore_port}", flush=True)
    try:
        listening.serve()
    except Exception:  # most often: the JVM is gone
        traceback.print_exc()
    os._exit(1)  # py4j's threads would keep the process


if __name__ == "__main__":
    main()
