"""Serve the door: `tidemark query-server`.

settings -> the routes of `front`, by uvicorn, on `host`:`query_port`; with TLS where a certificate is set.
"""

import logging

import uvicorn

from spark_jobs.query_server import front
from spark_jobs.settings import Settings


def configured(settings: Settings) -> uvicorn.Config:
    """Its own log lines tell who asked; what others say of requests (addresses, statements in them) stays out."""
    return uvicorn.Config(
        front.made(settings),
        host=settings.host,
        port=settings.query_port,
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=5,
        ssl_certfile=settings.query_certificate_file,
        ssl_keyfile=settings.query_key_file,
    )


def serve(settings: Settings) -> None:
    """Until it is stopped."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    uvicorn.Server(configured(settings)).run()
