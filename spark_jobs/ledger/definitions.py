"""What views said when they were first computed."""

from collections.abc import Mapping
from datetime import UTC, datetime

from sqlalchemy import select

from spark_jobs.ledger.models import Definition
from spark_jobs.ledger.sessions import Sessions


class Definitions(Sessions):
    def definitions(self) -> dict[str, str]:
        """View id -> text."""
        with self.read() as session:
            return {one.view_id: one.text for one in session.scalars(select(Definition))}

    def define(self, texts: Mapping[str, str]) -> None:
        """Write texts down; one that is there already stays."""
        if not texts:
            return
        with self.write() as session:
            for view_id, text in texts.items():
                if session.get(Definition, view_id) is None:
                    session.add(Definition(view_id=view_id, text=text, defined_at=datetime.now(UTC)))
