"""All views, found in `settings().views_folder`, joined to the event types and checked.

view files + event types -> load_views() -> Views. A wrong view is refused here, with the file, the reason and a hint; a
view that loads has been bound in DuckDB. List them: `python -m spark_jobs.registry`.
"""

import ast
import importlib.util
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.model import Contracts
from spark_jobs.definitions.binder import bind_aggregate, bind_sequence
from spark_jobs.definitions.bound_view import View
from spark_jobs.definitions.clauses import ViewError
from spark_jobs.definitions.declared_types import check_types
from spark_jobs.definitions.event_columns import EventColumns, EventTypes
from spark_jobs.definitions.inner_join import sequence_of
from spark_jobs.definitions.spec import Aggregate, Declaration, InnerJoin, Sequence
from spark_jobs.engine import chained_view
from spark_jobs.engine.chained_view import ChainedView, Served
from spark_jobs.expressions.arrow_types import kind_of
from spark_jobs.expressions.error import ExpressionError
from spark_jobs.expressions.source import NAME
from spark_jobs.registry.validation import check_alert, check_bound, check_chained, check_lookups
from spark_jobs.settings import ProjectError, settings


class RegistryError(ProjectError):
    """The file of a view or a model that cannot be used: which, for a view at which line, why, and what to do."""

    def __init__(self, file: Path, line: int | None, reason: str, hint: str):
        place = str(file) if line is None else f"{file}:{line}"
        super().__init__(f"{place}: {reason} ({hint})")
        self.file, self.line, self.reason, self.hint = str(file), line, reason, hint


@dataclass(frozen=True, eq=False)
class Views:
    """The loaded views, in the order of their ids: `all` that are stored, and the `chained` ones, which are not."""

    all: tuple[View, ...]
    chained: tuple[ChainedView, ...] = ()

    def __iter__(self) -> Iterator[View]:
        return iter(self.all)

    @cached_property
    def by_id(self) -> Mapping[str, View]:
        return {view.id: view for view in self.all}

    @cached_property
    def by_name(self) -> Mapping[str, View]:
        """The newest version of each view."""
        return {view.name: view for view in sorted(self.all, key=lambda view: view.version)}

    @cached_property
    def served(self) -> Mapping[str, Served]:
        """The newest version of each view that can be asked, by name."""
        both: list[Served] = [*self.all, *self.chained]
        return {view.name: view for view in sorted(both, key=lambda view: (view.version, view.name))}

    def __getitem__(self, view_id: str) -> View:
        return self.by_id[view_id]


def event_types_of(known: Contracts) -> EventTypes:
    """What views need to know of each event type."""
    return {
        contract.event_type: EventColumns(
            fields={f.name: kind_of(f.arrow) for f in contract.fields},
            compacted=contract.compacted,
            required=frozenset(f.name for f in contract.fields if f.required),
            is_outcome=contract.is_outcome,
        )
        for contract in known
    }


@cache
def project_views() -> Views:
    """The project's views, loaded once per process."""
    return load_views()


def load_views(folder: Path | None = None, event_types: EventTypes | None = None) -> Views:
    """Load and check every view file of `folder`, by default the settings'. Raises RegistryError for a wrong one."""
    folder = folder or settings().views_folder
    event_types = event_types_of(project_contracts()) if event_types is None else event_types
    declared = {}
    for file in files_of(folder):
        with _blamed(file):
            declared[file] = _declared(file, event_types)
    chained = {file: view for file, view in declared.items() if isinstance(view, Aggregate) and view.of_view}
    stored = {file: _load(file, view, event_types) for file, view in declared.items() if file not in chained}
    loaded = Views(tuple(stored.values()))
    for file, view in stored.items():
        with _blamed(file):
            check_lookups(view, loaded.by_name)
    return _with_chained(folder, loaded, chained)


def _with_chained(folder: Path, loaded: Views, declared: Mapping[Path, Aggregate]) -> Views:
    """The views, with the chained ones: each after the one that it is made of."""
    files = {_name(file, declaration): file for file, declaration in declared.items()}
    with _blamed(next(iter(declared), folder)):
        order = chained_view.ordered({name: declared[file] for name, file in files.items()})
    for name in order:
        file, declaration = files[name], declared[files[name]]
        with _blamed(file):
            base = loaded.served.get(str(declaration.of_view))
            if base is None:
                raise ViewError(f"there is no view {declaration.of_view}", f"known are {', '.join(loaded.served)}")
            view = chained_view.bind_chained(name, declaration, base)
            _check_file(file, view)
            check_chained(view)
            for version in loaded:
                if version.name == base.name:
                    chained_view.check_base(view, version)
            loaded = Views(loaded.all, (*loaded.chained, view))
    return loaded


def _load(file: Path, declared: Declaration, event_types: EventTypes) -> View:
    with _blamed(file):
        view: View
        if isinstance(declared, Aggregate):
            view = bind_aggregate(_name(file, declared), declared, event_types)
        else:
            view = bind_sequence(_name(file, declared), declared, event_types)
            check_alert(view, event_types)
        _check_file(file, view)
        check_bound(view)
        return view


def _name(file: Path, declared: Declaration) -> str:
    return file.stem.removesuffix(f"_v{declared.version}") if declared.version > 1 else file.stem


def _check_file(file: Path, view: Served) -> None:
    if not NAME.fullmatch(view.name) or view.id != file.stem:
        hint = f"name the file {view.id}.py: lower case, and _v{view.version} for versions after the first"
        raise ViewError(f"the file of version {view.version} is named {file.name}", hint)


def files_of(folder: Path) -> list[Path]:
    """The files of definitions, in order."""
    return sorted(file for file in folder.glob("*.py") if not file.name.startswith("_"))


def declared_in(file: Path, what: str) -> object:
    """The file's `view` or `model`, None where it has none. Raises whatever its text raises."""
    spec = importlib.util.spec_from_file_location(f"spark_jobs.{what}s.{file.stem}", file)
    assert spec is not None and spec.loader is not None  # the file is a *.py
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, what, None)


def _declared(file: Path, event_types: EventTypes) -> Declaration:
    try:
        declared = declared_in(file, "view")
    except Exception as error:
        raise ViewError(f"it does not import: {type(error).__name__}: {error}", "docs/views.md has examples") from error
    if not isinstance(declared, Aggregate | Sequence | InnerJoin):
        raise ViewError("it has no `view`", "write `view = Aggregate(...)` or `view = Sequence(...)`")
    check_types(declared)
    return sequence_of(declared, event_types) if isinstance(declared, InnerJoin) else declared


@contextmanager
def _blamed(file: Path) -> Iterator[None]:
    try:
        yield
    except (ViewError, ExpressionError) as error:
        stands = f"{error.where}: `{error.text}`: " if isinstance(error, ExpressionError) else ""
        raise RegistryError(file, _line(file, error), f"{stands}{error.reason}", error.hint) from error


def _line(file: Path, error: ViewError | ExpressionError) -> int:
    """The line of the longest text in the file that the reason names; else where the view begins."""
    try:
        tree = ast.parse(file.read_text("utf-8"))
    except (OSError, SyntaxError):
        return 1
    texts = [(n.value, n.lineno) for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    argument = error.where if isinstance(error, ExpressionError) else None
    if said_in := [n.value.lineno for n in ast.walk(tree) if isinstance(n, ast.keyword) and n.arg == argument]:
        return min(said_in)
    said = error.text if isinstance(error, ExpressionError) else error.reason
    named = [(len(text), -line) for text, line in texts if text and re.search(rf"(?<!\w){re.escape(text)}(?!\w)", said)]
    begins = [node.lineno for node in tree.body if isinstance(node, ast.Assign)]
    return -max(named)[1] if named else min(begins, default=1)
