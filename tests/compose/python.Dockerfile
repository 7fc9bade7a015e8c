# Stands in for the official Python image where no registry of images is reached: Debian's Python. `machine` holds what
# the machine that builds it has been told of certificate authorities and of where packages come from.
FROM localhost/debian:bookworm
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates python3 python3-pip python3-venv python-is-python3 \
 && rm -rf /var/lib/apt/lists/*
COPY machine/ /
RUN update-ca-certificates
ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
