# Stands in for the official PostgreSQL image where no registry of images is reached: Debian's server, and as much of the
# official image's interface as the compose file uses (POSTGRES_USER, POSTGRES_PASSWORD_FILE, docker-entrypoint-initdb.d).
FROM localhost/debian:bookworm
RUN apt-get update \
 && apt-get install -y --no-install-recommends postgresql \
 && rm -rf /var/lib/apt/lists/* /var/lib/postgresql/* \
 && ln -s /usr/lib/postgresql/*/bin/* /usr/local/bin/ \
 && install -d -o postgres -g postgres /var/lib/postgresql/data /docker-entrypoint-initdb.d /run/postgresql
COPY postgres.sh /usr/local/bin/
VOLUME /var/lib/postgresql/data
ENTRYPOINT ["sh", "/usr/local/bin/postgres.sh"]
