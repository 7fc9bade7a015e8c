"""What views said when they were first computed, and which versions their names are served from."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import select

from spark_jobs.ledger.database import Sessions
from spark_jobs.ledger.schema import Promotion, ViewText

PROMOTES = "promotes"
"""In a run's summary: name -> the version that it is served from once the run is published."""


class ViewVersions(Sessions):
    def promote(self, name: str, version: int) -> None:
        with self.write() as session:
            session.add(Promotion(name=name, version=version))

    def promotions(self, name: str) -> list[int]:
        """The versions that a name was promoted to, the newest decision last."""
        return self.all(select(Promotion.version).where(Promotion.name == name).order_by(Promotion.id))

    def promoted(self, at: datetime | None = None) -> dict[str, int]:
        """Name -> the version that it was last promoted to (by `at`); a name that never was is not in it."""
        decisions = select(Promotion).order_by(Promotion.id)
        if at is not None:
            decisions = decisions.where(Promotion.promoted_at <= at)
        return {row.name: row.version for row in self.all(decisions)}

    def view_texts(self) -> dict[str, str]:
        """View id -> text."""
        return {kept.view_id: kept.text for kept in self.all(select(ViewText))}

    def define(self, texts: Mapping[str, str]) -> None:
        """Write texts down; one that is there already stays."""
        if not texts:
            return
        with self.write() as session:
            for view_id, text in texts.items():
                if session.get(ViewText, view_id) is None:
                    session.add(ViewText(view_id=view_id, text=text))
