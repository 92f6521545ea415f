"""The change capture source, under its own name and Debezium's."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from connectors.plugins.postgres.capture import event_keys, facts, refusals, settings
from connectors.plugins.postgres.capture.pgoutput import BadMessage
from connectors.plugins.postgres.capture.positions import Position
from connectors.plugins.postgres.capture.session import Session
from connectors.plugins.postgres.capture.settings import CaptureSettings
from connectors.plugins.postgres.connection import translated
from connectors.sdk.configs import Definition, Value
from connectors.sdk.connector import Parsed, SourceConnector, SourceContext, SourceTask
from connectors.sdk.errors import ConfigError, ConnectorError, RetriableError
from connectors.sdk.records import Place, SourceRecord

KEPT: Final = "postgres.capture"


class PostgresCapture(SourceConnector):
    name = "samsa.postgres.capture"
    aliases = ("io.debezium.connector.postgresql.PostgresConnector",)
    title = "Changes of PostgreSQL"
    summary = "Rows, then each insert, update and delete from the log, as Debezium's events."
    refused: ClassVar[Mapping[str, str]] = refusals.REFUSED
    modules: ClassVar[tuple[str, ...]] = ("psycopg",)

    @classmethod
    def definition(cls) -> Definition:
        return Definition((*settings.keys(), *event_keys.keys(), *refusals.keys()))

    def validate(self, parsed: Parsed) -> Sequence[Value]:
        return settings.problems(parsed) or facts.problems(CaptureSettings.of(parsed))

    def task_configs(self, parsed: Parsed, *, max_tasks: int) -> list[dict[str, str]]:
        """Return one task: a slot has one reader, and its changes have one order."""
        del parsed, max_tasks
        return [{}]

    def alter_offsets(self, parsed: Parsed, offsets: Mapping[str, Place | None]) -> None:
        del parsed
        for place, offset in offsets.items():
            try:
                Position.of(offset)
            except ConfigError as error:
                raise ConfigError(f"{place}: {error}") from None

    def task(self) -> SourceTask:
        return PostgresCaptureTask()


class PostgresCaptureTask(SourceTask):
    def start(self, context: SourceContext, parsed: Parsed) -> None:
        self._context = context
        self._settings = CaptureSettings.of(parsed)

    def poll(self) -> list[SourceRecord]:
        try:
            with translated():
                session = self._session()
                records = session.poll()
        except BadMessage as error:
            self._forget()
            raise ConnectorError(f"PostgreSQL sent data that is not pgoutput: {error}") from error
        except RetriableError as error:
            self._forget()
            most = self._settings.max_retries
            if 0 <= most <= self._context.retries:
                raise ConnectorError(f"{error}; gave up after {most} retries") from error
            raise
        except ConnectorError:
            self._forget()
            raise
        for text in session.new_warnings():
            self._context.warn(text)
        return records

    def reached(self) -> tuple[Place, Place] | None:
        session: Session | None = self._context.kept.get(KEPT)
        position = session.reached() if session is not None else None
        if session is None or position is None:
            return None
        return session.place, position.offset()

    def commit(self, records: Sequence[SourceRecord]) -> None:
        session: Session | None = self._context.kept.get(KEPT)
        if session is not None:
            with translated():
                session.stored(records)

    def _session(self) -> Session:
        session: Session | None = self._context.kept.get(KEPT)
        if session is None:
            self._context.kept[KEPT] = session = Session(self._settings, self._context)
        return session

    def _forget(self) -> None:
        session: Session | None = self._context.kept.pop(KEPT, None)
        if session is not None:
            session.close()
