"""Names the cause of a lost record, and what to do about it; equal causes are counted together.

Pure. What a message quotes, and long numbers, are left out, so that messages about several records
are equal; whatever else may repeat a record is marked.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from connectors.runtime import record_parts
from connectors.runtime.masking import masked
from connectors.runtime.steps import Stage, StepFailed
from connectors.runtime.traces import parts, words
from gateway.kafka.errors import KafkaFailure

# A row of the database holds some of them, and a page shows them in full.
MAX_CAUSE_CHARS: Final = 300
# Quoted parts, also those that a limit has cut, and numbers of more digits than a status has.
OWN_TO_A_RECORD: Final = re.compile(
    r"""(?<!\w)b?(?:"[^"]*(?:"|$)|'[^']*(?:'|$))|(?<![:.\w])\d{4,}"""
)
LEFT_OUT: Final = "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why records were lost. `advice` is empty if nothing general can be said."""

    text: str
    advice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Remedy:
    """What to do about messages that contain some words; {side} is key, value or header."""

    words: str
    text: str
    advice: str


OTHERS: Final = Cause(text="other errors")
SIDES: Final = {
    Stage.KEY_CONVERTER.value: "key",
    Stage.VALUE_CONVERTER.value: "value",
    Stage.HEADER_CONVERTER.value: "header",
}
REMEDIES: Final = (
    _Remedy(
        words="JsonConverter with schemas.enable requires",
        text="{side}s are plain JSON without a schema",
        advice="set {side}.converter.schemas.enable=false",
    ),
    _Remedy(
        words="Converting byte[] to Kafka Connect data failed",
        text="{side}s are not JSON",
        advice="set {side}.converter to the format of the topic, such as"
        " org.apache.kafka.connect.storage.StringConverter for text",
    ),
    _Remedy(
        words="the record has no key, which pk.mode=record_key needs",
        text="records have no key",
        advice="set pk.mode=record_value, or write records with keys",
    ),
    _Remedy(
        words="and delete.enabled is false",
        text="records have no value",
        advice="set delete.enabled=true and pk.mode=record_key to delete their rows, or drop them"
        " with the transform Filter and the predicate RecordIsTombstone",
    ),
    _Remedy(
        words="a struct with fields is needed",
        text="{side}s have no fields, which become columns",
        advice="use a converter that reads fields, such as JsonConverter, or the transform"
        " HoistField",
    ),
    _Remedy(
        words="null value in column",
        text="rows lack a value for a column that is NOT NULL",
        advice="give the column a default or allow NULL, or write records with the field",
    ),
    _Remedy(
        words="invalid input syntax for type",
        text="values do not fit the type of their column",
        advice="alter the column's type, or convert the field with the transform Cast",
    ),
)


def cause_of(failed: StepFailed, secrets: Iterable[str], topics: Collection[str]) -> Cause:
    """Return the cause of a failed step on a record of some topics."""
    error = failed.cause
    if isinstance(error, KafkaFailure):
        return Cause(text=_shown(str(error), secrets), advice=error.next_step)
    said = (words(error).strip().splitlines() or [type(error).__name__])[0]
    if (known := _remedied(failed.stage.value, said)) is not None:
        return known
    _, about_record = parts(error)
    shown = _shown(said, secrets)
    return Cause(text=record_parts.marked(shown, topics) if about_record else shown)


def of_message(stage: str, said: str) -> Cause:
    """Return the cause that the message of an error names, without what is own to one record.

    Passwords are not masked, and no part is marked: a reader of dead letters sees records.
    """
    return _remedied(stage, said) or Cause(text=_shown(said, ()))


def _remedied(stage: str, said: str) -> Cause | None:
    """Return the cause of a message that is known; None for others."""
    side = SIDES.get(stage.upper(), "value")
    for remedy in REMEDIES:
        if remedy.words in said:
            return Cause(text=remedy.text.format(side=side), advice=remedy.advice.format(side=side))
    return None


def _shown(text: str, secrets: Iterable[str]) -> str:
    return OWN_TO_A_RECORD.sub(LEFT_OUT, masked(text, secrets))[:MAX_CAUSE_CHARS]
