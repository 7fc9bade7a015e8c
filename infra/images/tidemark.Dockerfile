# One image for every part of Tidemark: both environments, the jars, the code. A part is chosen by its name:
#   docker build -f infra/images/tidemark.Dockerfile -t tidemark .
#   docker run tidemark broker
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
COPY --chown=tidemark:tidemark spark_jobs/__init__.py spark_jobs/settings.py spark_jobs/
COPY --chown=tidemark:tidemark spark_jobs/storage/__init__.py spark_jobs/storage/java.py spark_jobs/storage/
RUN python infra/setup.py --no-archives && rm -rf "$HOME/.cache"
# A container compiles nothing when it starts. Some packages carry files that are for other versions of Python.
RUN for env in .venv .venv-airflow; do $env/bin/python -m compileall -qq $env/lib || true; done

COPY --chown=tidemark:tidemark . .
RUN .venv/bin/python -m infra.archives

ENV TIDEMARK_HOME=/var/lib/tidemark
VOLUME /var/lib/tidemark
ENTRYPOINT [".venv/bin/python", "-m", "infra.embedded.launch"]
