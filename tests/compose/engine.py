"""The engine of containers on this machine, and the deployment of docker-compose.yml in it.

docker where an engine of it answers, else podman with podman-compose. Nothing here stands for a part: what runs is the
compose file. Containers are found by the labels that both give them.
"""

import json
import os
import resource
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from spark_jobs.settings import ROOT
from tests.platform import await_true

FILE = ROOT / "docker-compose.yml"
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(FILE.read_text())["services"]
LASTING = [name for name, service in SERVICES.items() if "healthcheck" in service]
MOST = 16384
"""Of files and processes: podman asks for a million, and is refused where this session may have fewer."""


class EngineError(AssertionError):
    """A command of the engine failed; with what it said."""


def run(
    command: list[str], *, env: dict[str, str], what: bytes | None = None, timeout: float = 3600
) -> "subprocess.CompletedProcess[bytes]":
    """Runs it, whatever its exit code."""
    return subprocess.run(command, cwd=ROOT, env=env, input=what, capture_output=True, check=False, timeout=timeout)


@dataclass(frozen=True)
class Engine:
    """`program` is docker or podman; `compose` starts a command of Compose."""

    program: str
    compose: tuple[str, ...]
    environment: dict[str, str] = field(repr=False)

    def ask(self, *arguments: str, timeout: float = 3600) -> str:
        """What the engine prints; raises EngineError unless the exit code is 0."""
        return self._checked([self.program, *arguments], {}, timeout)

    def tell(self, project: str, variables: dict[str, str], *arguments: str) -> str:
        """The same of Compose."""
        return self._checked([*self.compose, "-p", project, "-f", str(FILE), *arguments], variables, 3600)

    def _checked(self, command: list[str], variables: dict[str, str], timeout: float) -> str:
        done = run(command, env={**self.environment, **variables}, timeout=timeout)
        if done.returncode != 0:
            said = (done.stdout + done.stderr).decode(errors="replace")
            raise EngineError(f"{' '.join(command)} ended with {done.returncode}:\n{said[-6000:]}")
        return done.stdout.decode(errors="replace")


def find() -> Engine:
    """The engine of this machine; fails with what to install where there is none."""
    if shutil.which("docker") and run(["docker", "info"], env=dict(os.environ)).returncode == 0:
        return Engine("docker", ("docker", "compose"), dict(os.environ))
    assert shutil.which("podman") and shutil.which("podman-compose"), (
        "no engine of containers: install docker with its compose plugin, or podman (docs/compose.md says what with)"
    )
    # As docker does it: a read-only container has no other place to write than those that the file gives it.
    strict = ("podman-compose", "--podman-run-args=--read-only-tmpfs=false")
    return Engine("podman", strict, os.environ | {"CONTAINERS_CONF": str(_configuration())})


def _configuration() -> Path:
    """What podman must know of this machine: the limits of this session; runc where crun cannot use its cgroups."""
    limits = [
        f"{name}={most}:{most}"
        for name, what in (("nofile", resource.RLIMIT_NOFILE), ("nproc", resource.RLIMIT_NPROC))
        for most in [min(limit for limit in (resource.getrlimit(what)[1], MOST) if limit > 0)]
    ]
    is_unified = Path("/sys/fs/cgroup/cgroup.controllers").exists()
    runtime = "" if is_unified or not shutil.which("runc") else '[engine]\nruntime = "runc"\n'
    file = Path(tempfile.mkdtemp(prefix="tidemark-")) / "containers.conf"
    file.write_text(f"[containers]\ndefault_ulimits = {json.dumps(limits)}\n{runtime}")
    return file


@dataclass(frozen=True)
class Deployment:
    """One project of the compose file. `ports` are the doors that it publishes on this machine, by their variables."""

    engine: Engine
    project: str
    ports: dict[str, int]

    @cached_property
    def variables(self) -> dict[str, str]:
        return {name: str(port) for name, port in self.ports.items()}

    def up(self, *services: str) -> None:
        """Start them in the order of their needs, each when what it needs is healthy."""
        for service in services or LASTING:
            for need in SERVICES[service].get("depends_on", {}):
                self.await_healthy(need)
            said = self.engine.tell(self.project, self.variables, "up", "--detach", "--no-build", service)
            assert self.container(service), f"{service} was not made: {said}"  # podman-compose ends with 0 all the same
        for service in services or LASTING:
            self.await_healthy(service)

    def down(self) -> None:
        """Stop and remove everything, its volumes and networks too; podman-compose leaves the networks."""
        self.engine.tell(self.project, self.variables, "down", "--volumes")
        of = f"label=com.docker.compose.project={self.project}"
        for network in self.engine.ask("network", "ls", "--quiet", "--filter", of).split():
            self.engine.ask("network", "rm", network)

    def container(self, service: str) -> str:
        of = [f"label=com.docker.compose.project={self.project}", f"label=com.docker.compose.service={service}"]
        asked = [argument for one in of for argument in ("--filter", one)]
        return self.engine.ask("ps", "--all", "--quiet", *asked).strip()

    def inspect(self, service: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.engine.ask("inspect", self.container(service)))[0]
        return found

    def exec(self, service: str, *command: str) -> "subprocess.CompletedProcess[bytes]":
        """Run a command in the container of a service, whatever its exit code."""
        return run([self.engine.program, "exec", self.container(service), *command], env=self.engine.environment)

    def is_healthy(self, service: str) -> bool:
        """By the file's own health check: docker asks it by itself, podman when it is told to."""
        if "healthcheck" not in SERVICES[service]:
            return True
        if self.engine.program == "docker":
            return bool(self.inspect(service)["State"].get("Health", {}).get("Status") == "healthy")
        asked = [self.engine.program, "healthcheck", "run", self.container(service)]
        return run(asked, env=self.engine.environment).returncode == 0

    def await_healthy(self, service: str, seconds: float = 900) -> None:
        try:
            await_true(lambda: self.is_healthy(service), seconds, f"{service} is not healthy", every=2)
        except AssertionError as error:
            logged = run(
                [self.engine.program, "logs", "--tail", "60", self.container(service)],
                env=os.environ | self.engine.environment,
            )
            raise EngineError(f"{error}:\n{(logged.stdout + logged.stderr).decode(errors='replace')}") from error

    def kill(self, service: str) -> None:
        """End all its processes at once, as a crash does: the engine is not told, it has to see it."""
        before = self.inspect(service)["State"]
        pid = str(before["Pid"])
        killer = ("--rm", "--pid", "host", "--user", "0", "--network", "none", "--entrypoint", "sh", "tidemark")
        self.engine.ask("run", *killer, "-c", f"kill -9 {pid}")
        restarted = lambda: self.inspect(service)["State"]["Pid"] not in (0, before["Pid"])  # noqa: E731
        await_true(restarted, 120, f"{service} was not started again", every=1)
