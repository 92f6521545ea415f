"""Validates forms about topics, by the brokers' rules for names and values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from django import forms

from brokers.cluster import topic_configs
from brokers.cluster.config_values import LIVE, ConfigRow, ConfigType
from brokers.cluster.decisions import MAX_PARTITIONS_PER_TOPIC
from brokers.cluster.proposals import ConfigEdit, ConfigOperation, CreateTopic
from brokers.cluster.topic_configs import INTERNAL_SEGMENT_BYTES
from brokers.cluster.topic_names import MAX_NAME_LENGTH, check_topic_name
from brokers.protocol.errors import KafkaError
from brokers.quantities import BadQuantity, in_words

MAX_NAME_CHARS: Final = MAX_NAME_LENGTH
# Characters of an input that an error message repeats.
SHOWN: Final = 60
# Digits of the largest valid number here, and some more.
MAX_DIGITS: Final = 6
# No producer writes as much; a larger number is a typing error.
MAX_RATE_MIB: Final = 100_000
# Rows for configs: some initially, this many more on demand, and one per key at most.
FIRST_ROWS: Final = 3
MORE_ROWS: Final = 3
MAX_ROWS: Final = len(topic_configs.ROWS) + 5
MIB: Final = 1024 * 1024
BY_CLUSTER: Final = -1
# This release keeps each partition on one broker.
REPLICATION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigLine:
    """A config as typed, with its meaning and its error."""

    key: str = ""
    value: str = ""
    meaning: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditLine:
    """A config of a topic in the form that edits all of them."""

    key: str
    value: str
    was: str | None  # None: it was not set
    inherited: str
    words: str  # the value in effect, in readable units
    meaning: str
    is_boolean: bool
    can_be_empty: bool
    is_empty: bool  # set to an empty value
    error: str = ""


class NewTopicForm(forms.Form):
    """A topic to create; the cluster chooses values for empty fields."""

    name = forms.CharField(required=False)
    partitions = forms.CharField(required=False)
    rate = forms.CharField(required=False)

    def __init__(self, data: Any = None, **more: Any) -> None:  # noqa: ANN401 - as Django has it
        super().__init__(data, **more)
        keys = [] if data is None else data.getlist("key")
        values = [] if data is None else data.getlist("value")
        self.lines = lines_of(list(zip(keys, values, strict=False))[:MAX_ROWS])
        self.configs_error = _together({line.key: line.value for line in self.lines if line.key})

    def clean_name(self) -> str:
        name = str(self.cleaned_data["name"])
        try:
            check_topic_name(name)
        except KafkaError as error:
            raise forms.ValidationError(
                f"{error.message}. Use 1 to 249 letters, digits, dots, underscores and hyphens."
            ) from error
        return name

    def clean_partitions(self) -> int:
        return self._whole("partitions", most=MAX_PARTITIONS_PER_TOPIC)

    def clean_rate(self) -> float | None:
        text = str(self.cleaned_data["rate"]).replace(",", ".")
        if not text:
            return None
        try:
            rate = float(text[:SHOWN])
        except ValueError:
            rate = -1.0
        if not 0 < rate <= MAX_RATE_MIB:
            raise forms.ValidationError(
                f"“{text[:SHOWN]}” is not a rate: give MiB a second, above 0 and up to "
                f"{MAX_RATE_MIB:,}, or leave it empty."
            )
        return rate * MIB

    def bytes_per_s(self) -> float | None:
        """Return the expected bytes per second; None without a valid input."""
        if not self.is_bound:
            return None
        self.is_valid()
        found: float | None = self.cleaned_data.get("rate")
        return found

    def is_whole(self) -> bool:
        """Tell whether the fields and the configs are valid."""
        has_wrong = any(line.error for line in self.lines)
        return self.is_valid() and not has_wrong and not self.configs_error

    def action(self) -> CreateTopic:
        given: dict[str, Any] = self.cleaned_data
        return CreateTopic(
            name=given["name"],
            partitions=given["partitions"],
            replication_factor=REPLICATION,
            configs=tuple(
                (line.key, _plain(line.key, line.value)) for line in self.lines if line.key
            ),
        )

    def _whole(self, field: str, *, most: int) -> int:
        text = str(self.cleaned_data[field])
        if not text:
            return BY_CLUSTER
        is_number = text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS + 1
        if not is_number or not 0 < int(text) <= most:
            raise forms.ValidationError(
                f"“{text[:SHOWN]}” is not a number of {field}: give 1 to {most:,}, or leave it "
                "empty for the cluster's default."
            )
        return int(text)


def growth(typed: str, *, there: int) -> tuple[int, str]:
    """Return the typed total number of partitions, or the error."""
    is_number = typed.isascii() and typed.isdigit() and len(typed) <= MAX_DIGITS
    count = int(typed) if is_number else 0
    if there < count <= MAX_PARTITIONS_PER_TOPIC:
        return count, ""
    return 0, (
        f"“{typed[:SHOWN]}” is not a possible number of partitions: give {there + 1:,} to "
        f"{MAX_PARTITIONS_PER_TOPIC:,}, which is how many there will be in all."
    )


def lines_of(pairs: Sequence[tuple[str, str]]) -> list[ConfigLine]:
    """Return the typed configs, each checked; empty lines are left out."""
    found: list[ConfigLine] = []
    for key, value in ((key.strip(), value) for key, value in pairs):
        if not key and not value:
            continue
        row = topic_configs.ROWS.get(key)
        error = _wrong(key, value)
        if not error and any(line.key == key for line in found):
            error = f"{key} is given twice: keep one of the two."
        found.append(
            ConfigLine(
                key=key, value=value, meaning="" if row is None else row.sentence, error=error
            )
        )
    return found


def with_room(lines: Sequence[ConfigLine], *, more: int = 0) -> list[ConfigLine]:
    """Return the lines followed by empty ones."""
    room = max(1 if lines else FIRST_ROWS, more)
    return [*lines, *(ConfigLine() for _ in range(min(room, MAX_ROWS - len(lines))))]


def edit_lines(configs: Mapping[str, str], inherited: Mapping[str, str]) -> list[EditLine]:
    """Return every config that has an effect or is set, with its value; set ones come first."""
    rows = [row for row in offered() if row.effect == LIVE or row.key in configs]
    if INTERNAL_SEGMENT_BYTES in configs:
        rows.append(topic_configs.ROWS[INTERNAL_SEGMENT_BYTES])
    rows.sort(key=lambda row: (row.key not in configs, row.key))
    return [
        EditLine(
            key=row.key,
            value=configs.get(row.key, ""),
            was=configs.get(row.key),
            inherited=inherited.get(row.key, ""),
            words=in_words(row.key, configs.get(row.key, inherited.get(row.key, ""))),
            meaning=row.sentence,
            is_boolean=row.type is ConfigType.BOOLEAN,
            can_be_empty=row.type is ConfigType.LIST,
            is_empty=configs.get(row.key) == "",
        )
        for row in rows
    ]


def offered() -> list[ConfigRow]:
    """Return the configs of topics except for the one that is for tests."""
    return [row for key, row in topic_configs.ROWS.items() if key != INTERNAL_SEGMENT_BYTES]


def edited(lines: Sequence[EditLine], given: Mapping[str, str]) -> list[EditLine]:
    """Return the lines of a sent form, with changed ones checked.

    The form carries the original values, so that only what this user changed is changed, whatever
    others did meanwhile.
    """
    return [_edited(line, given) for line in lines]


def edits_of(lines: Sequence[EditLine]) -> tuple[ConfigEdit, ...]:
    found = []
    for line in lines:
        now = _plain(line.key, line.value) if line.value or line.is_empty else None
        if now == line.was:
            continue
        operation = ConfigOperation.DELETE if now is None else ConfigOperation.SET
        found.append(ConfigEdit(key=line.key, operation=operation, value=now))
    return tuple(found)


def together(lines: Sequence[EditLine]) -> str:
    """Return the error of valid values that conflict with each other; empty if none."""
    return _together({line.key: line.value for line in lines if line.value or line.is_empty})


def _edited(line: EditLine, given: Mapping[str, str]) -> EditLine:
    value = given.get(f"value-{line.key}", line.value).strip()
    was = given.get(f"was-{line.key}")
    is_empty = not value and line.can_be_empty and f"empty-{line.key}" in given
    is_set = bool(value) or is_empty
    has_changed = (_plain(line.key, value) if is_set else None) != was
    return replace(
        line,
        value=value,
        was=was,
        is_empty=is_empty,
        error=_wrong(line.key, value) if is_set and has_changed else "",
    )


def _wrong(key: str, value: str) -> str:
    if not key:
        return f"“{value[:SHOWN]}” has no config in front of it: name one, or empty the line."
    row = topic_configs.ROWS.get(key)
    try:
        topic_configs.check(key, value if row is None else row.plain(value))
    except BadQuantity as error:
        return f"{key}: “{value[:SHOWN]}” {error}."
    except KafkaError as error:
        return f"{error.message}."
    return ""


def _plain(key: str, value: str) -> str:
    """Return a typed value as it is stored; one that is wrong stays, and is refused as it is."""
    row = topic_configs.ROWS.get(key)
    try:
        return value if row is None else row.plain(value)
    except BadQuantity:
        return value


def _together(configs: Mapping[str, str]) -> str:
    """Check values against each other, if each is valid."""
    if any(_wrong(key, value) for key, value in configs.items()):
        return ""
    try:
        topic_configs.check_together({key: _plain(key, text) for key, text in configs.items()})
    except KafkaError as error:
        return f"{error.message}."
    return ""
