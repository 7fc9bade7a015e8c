# One image for every part of Tidemark: both environments, the jars, the code. A part is chosen by its name:
#   docker build -f infra/images/tidemark.Dockerfile -t tidemark .
#   docker run tidemark broker
# Where packages come from elsewhere than by default, a file of shell variables says so (UV_DEFAULT_INDEX, PIP_INDEX_URL,
# TIDEMARK_MAVEN_URL, ...); it is mounted for the one step that reads it, and stays out of the image:
#   docker build --secret id=registries,src=FILE -f infra/images/tidemark.Dockerfile -t tidemark .
FROM python:3.11-slim-bookworm

RUN apt-get update \
 && apt-get install -y --no-install-recommends openjdk-17-jre-headless \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 1000 --create-home tidemark \
 && install -d -o tidemark -g tidemark /opt/tidemark /var/lib/tidemark

USER tidemark
WORKDIR /opt/tidemark

# What changes seldom comes first: environments and jars are built from the lock files alone.
COPY --chown=tidemark:tidemark pyproject.toml README.md ./
COPY --chown=tidemark:tidemark infra/__init__.py infra/setup.py infra/preflight.py infra/jars.py infra/archives.py infra/login.py infra/PasswordLogin.scala infra/
COPY --chown=tidemark:tidemark infra/locks infra/locks
COPY --chown=tidemark:tidemark infra/conf infra/conf
COPY --chown=tidemark:tidemark spark_jobs/__init__.py spark_jobs/
COPY --chown=tidemark:tidemark spark_jobs/storage/__init__.py spark_jobs/storage/java.py spark_jobs/storage/
# Downloads stay in a cache of the builder, so that a change of a lock fetches only what changed.
RUN --mount=type=secret,id=registries,uid=1000 --mount=type=cache,target=/home/tidemark/.cache,uid=1000,gid=1000 \
    set -a && if [ -f /run/secrets/registries ]; then . /run/secrets/registries; fi \
 && UV_LINK_MODE=copy python infra/setup.py --no-archives
# A container compiles nothing when it starts. Some packages carry files that are for other versions of Python.
RUN for env in .venv .venv-airflow; do $env/bin/python -m compileall -j 0 -qq $env/lib || true; done

COPY --chown=tidemark:tidemark infra infra
COPY --chown=tidemark:tidemark spark_jobs spark_jobs
RUN .venv/bin/python -m compileall -qq infra spark_jobs && .venv/bin/python -m infra.archives
COPY --chown=tidemark:tidemark . .
RUN .venv-airflow/bin/python -m compileall -qq dags infra/airflow

ENV TIDEMARK_HOME=/var/lib/tidemark PATH=/opt/tidemark/.venv/bin:$PATH
VOLUME /var/lib/tidemark
ENTRYPOINT [".venv/bin/python", "-m", "infra.embedded.launch"]
