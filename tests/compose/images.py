"""The images that the compose file names: Tidemark's is built, the official ones are pulled.

Where no registry of images is reached, Debian's packages stand in for the official ones: the machine's own sources of
packages -> mmdebstrap -> localhost/debian:bookworm -> python, postgres. What a machine was told of its sources, mirrors
and certificate authorities is read from it at run time.
"""

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from spark_jobs.settings import ROOT
from tests.compose.engine import SERVICES, Engine, EngineError, run

HERE = Path(__file__).parent
TIDEMARK = ROOT / "infra/images/tidemark.Dockerfile"
BASE, SUITE = "localhost/debian:bookworm", "bookworm"
OFFICIAL = {"python:3.11-slim-bookworm": "python.Dockerfile", SERVICES["postgres"]["image"]: "postgres.Dockerfile"}
REGISTRIES = ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL", "PIP_TRUSTED_HOST", "TIDEMARK_MAVEN_URL")
TOLD = {
    "/usr/local/share/ca-certificates": "",
    "/etc/pip.conf": "",
    "/etc/uv/uv.toml": "",
    "~/.config/uv/uv.toml": "/etc/uv/uv.toml",
}


def build(engine: Engine) -> None:
    """Everything that docker-compose.yml names, of the code as it is now."""
    for name, stand_in in OFFICIAL.items():
        _official(engine, name, stand_in)
    with tempfile.TemporaryDirectory() as folder:
        registries = Path(folder) / "registries"
        registries.write_text("".join(f"{name}='{os.environ[name]}'\n" for name in REGISTRIES if name in os.environ))
        secret = ("--secret", f"id=registries,src={registries}")
        engine.ask("build", *secret, "--file", str(TIDEMARK), "--tag", "tidemark", str(ROOT))


def _official(engine: Engine, name: str, stand_in: str) -> None:
    if _is_there(engine, name):
        return
    with suppress(EngineError):
        engine.ask("pull", name)
        return
    if not _is_there(engine, BASE):
        _base(engine)
    with tempfile.TemporaryDirectory() as folder:
        context = Path(folder)
        shutil.copytree(HERE, context, dirs_exist_ok=True)
        _machine(context / "machine")
        tag = f"localhost/{name}" if engine.program == "podman" else name
        engine.ask("build", "--file", str(context / stand_in), "--tag", tag, str(context))


def _is_there(engine: Engine, image: str) -> bool:
    return run([engine.program, "image", "inspect", image], env=engine.environment).returncode == 0


def _base(engine: Engine) -> None:
    """A minimal Debian from where this machine has its own packages."""
    assert shutil.which("mmdebstrap"), "no registry of images is reached; to do without one, install mmdebstrap"
    places = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*.[ls]*"))]
    sources = [
        str(file)
        for file in places
        if file.suffix in {".list", ".sources"} and file.exists() and SUITE in file.read_text()
    ]
    with tempfile.TemporaryDirectory() as folder:
        tar = f"{folder}/base.tar"
        done = run(["mmdebstrap", "--variant=minbase", SUITE, tar, *sources], env=dict(os.environ))
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        engine.ask("import", tar, BASE)


def _machine(root: Path) -> None:
    """The files by which this machine was told whom to trust and where packages come from, below `root`."""
    root.mkdir()
    for place, target in TOLD.items():
        source = Path(place).expanduser()
        copy = root / (target or place).lstrip("/")
        if source.is_dir():
            shutil.copytree(source, copy)
        elif source.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy)
