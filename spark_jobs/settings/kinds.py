"""The kinds of numbers and files that settings are."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

Port = Annotated[int, Field(ge=1, le=65535)]
Share = Annotated[float, Field(ge=0, le=1)]
Natural = Annotated[int, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]
Time = Annotated[float, Field(ge=0)]
File = Annotated[Path, AfterValidator(lambda file: file.expanduser().absolute())]
"""A file that a setting names; processes with other working folders mean the same one, and a link stays a link."""
