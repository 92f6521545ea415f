"""Validates forms about groups, and translates them into requests of `group_changes.planning`."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta, tzinfo
from typing import Any, Final
from urllib.parse import urlencode

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.http import QueryDict
from django.utils.datastructures import MultiValueDict

from console import times
from console.group_changes.planning import AskedReset
from console.group_changes.plans import FILE_NAME
from console.preferences import zone_named
from gateway import moments
from gateway.kafka.offset_plan import (
    MAX_OFFSET,
    Goal,
    GoalKind,
    PlanError,
    parse_csv,
    parse_topics,
)
from gateway.kafka.values import Place

# A line for each of MAX_PLACES partitions, with names of fifty characters.
MAX_FILE_BYTES: Final = 1024 * 1024
MAX_TOPICS_CHARS: Final = 100_000
# Django accepts no more fields in a form.
MAX_TICKED: Final = 1_000
# More than Kafka's own clients ever use; the protocol would allow 32 KiB.
MAX_GROUP_CHARS: Final = 1_000
MAX_AGO: Final = 1_000_000
UNITS: Final = {
    "minutes": timedelta(minutes=1),
    "hours": timedelta(hours=1),
    "days": timedelta(days=1),
}
GROUP: Final = "group"
AGO: Final = "ago"
# Fields that a link can prefill: some always, the others if the mode needs them.
KEPT: Final = frozenset({"mode", "scope"})
TOLD: Final = (*KEPT, "offset", "shift", "time", AGO, "unit", "source", "topics")
# Some proxies cut longer links.
MAX_TOLD_CHARS: Final = 1_500
# mode: (its title, its effect)
MODES: Final[Mapping[str, tuple[str, str]]] = {
    "earliest": ("Earliest", "the first offset that each partition still holds"),
    "latest": ("Latest", "the end: only records written from now on"),
    "offset": ("Offset", "the same offset in each partition"),
    "time": ("Time", "the first record at or after a time"),
    AGO: ("Back in time", "the first record of the last minutes, hours or days"),
    "shift": ("Shift", "forward by a number of offsets, or back if it is negative"),
    "current": ("Current", "the committed offset; the end without one"),
    GROUP: ("Like another group", "the committed offsets of that group"),
    "file": ("From a file", "CSV of topic,partition,offset, as Kafka's tool exports it"),
}
# The field that a mode needs, and the error if it is missing.
NEEDS: Final[Mapping[str, tuple[str, str]]] = {
    "offset": ("offset", "Give the offset: a number from 0 on."),
    "time": ("time", "Give the time, such as yesterday 12:00 or 2026-01-31 12:00."),
    AGO: ("ago", "Say how long ago: a number from 0 on."),
    "shift": ("shift", "Give the number of offsets, such as 100 or -100."),
    GROUP: ("source", "Name the group whose offsets are to be taken over."),
    "file": ("file", "Choose the file."),
}


class ResetForm(forms.Form):
    """The new position of a group. `asked` is set once the form is valid."""

    mode = forms.ChoiceField(choices=[(key, words) for key, (words, _) in MODES.items()])
    offset = forms.IntegerField(required=False, min_value=0, max_value=MAX_OFFSET)
    shift = forms.IntegerField(required=False, min_value=-MAX_OFFSET, max_value=MAX_OFFSET)
    time = forms.CharField(required=False, max_length=moments.MAX_CHARS)
    # Selects one of two moments, for a clock time that occurs twice.
    moment = forms.CharField(required=False, max_length=moments.MAX_CHARS)
    # The time zone of the form, to which typed times refer.
    zone = forms.CharField(required=False, max_length=64)
    ago = forms.IntegerField(required=False, min_value=0, max_value=MAX_AGO)
    unit = forms.ChoiceField(required=False, choices=[(unit, unit) for unit in UNITS])
    source = forms.CharField(required=False, max_length=MAX_GROUP_CHARS, strip=False)
    file = forms.FileField(required=False, allow_empty_file=True)
    scope = forms.ChoiceField(choices=[("all", "all"), ("some", "some")])
    topics = forms.CharField(required=False, max_length=MAX_TOPICS_CHARS)

    def __init__(
        self,
        data: QueryDict | None = None,
        files: "MultiValueDict[str, UploadedFile[bytes]] | None" = None,
        *,
        group: str,
        now: datetime,
        zone: tzinfo,
        zone_name: str,
        before: Mapping[str, str] | None = None,
    ) -> None:
        """`before` is the previous request, as returned by `told`."""
        known = {name: text for name, text in (before or {}).items() if name in TOLD}
        # A link has an instant; one of an earlier release has a clock time, and perhaps its zone.
        with suppress(moments.NotAMoment):
            typed_in = zone_named((before or {}).get("zone", "")) or zone
            at = moments.one(known.get("time", ""), zone=typed_in, now=now)
            known["time"] = moments.written(at, zone)
        super().__init__(data, files, initial=known)
        self._group = group
        self._now = now
        self._zone = zone
        self._zone_name = zone_name
        self.asked: AskedReset | None = None
        # Both moments of a clock time that occurs twice, for the page to ask which one is meant.
        self.twice: tuple[datetime, ...] = ()

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or {}
        if self.errors:
            return given
        mode = given["mode"]
        needed, sentence = NEEDS.get(mode, ("mode", ""))
        if given.get(needed) in (None, ""):
            raise forms.ValidationError({needed: sentence})
        topics = self._topics(given) if given["scope"] == "some" else None
        self.asked = self._asked(mode, given, topics)
        return given

    def _asked(
        self, mode: str, given: Mapping[str, Any], topics: Mapping[str, tuple[int, ...]] | None
    ) -> AskedReset:
        from_file = ("--from-file", FILE_NAME)
        match mode:
            case "offset" | "shift":
                value = int(given[mode])
                goal = Goal(kind=GoalKind(mode), value=value)
                options = (f"--to-offset={value}" if mode == "offset" else f"--shift-by={value}",)
                return AskedReset(goal=goal, topics=topics, options=options)
            case "time":
                return self._since(self._moment(given), topics)
            case "ago":
                # There is no record before 1970.
                span = min(
                    given["ago"] * UNITS[given["unit"] or "hours"], self._now - moments.EPOCH
                )
                return self._since(self._now - span, topics)
            case "group":
                goal = Goal(kind=GoalKind.FILE)
                return AskedReset(
                    goal=goal, topics=topics, source=given["source"], options=from_file
                )
            case "file":
                goal = Goal(kind=GoalKind.FILE)
                file = self._places(given["file"])
                return AskedReset(goal=goal, topics=topics, file=file, options=from_file)
            case _:
                goal = Goal(kind=GoalKind(mode))
                return AskedReset(goal=goal, topics=topics, options=(f"--to-{mode}",))

    def _since(self, moment: datetime, topics: Mapping[str, tuple[int, ...]] | None) -> AskedReset:
        # No record is older than 1970, and negative numbers stand for other positions.
        ms = max(0, moments.milliseconds_of(moment))
        text = moments.at(ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return AskedReset(
            goal=Goal(kind=GoalKind.TIME, value=ms), topics=topics, options=("--to-datetime", text)
        )

    def _moment(self, given: Mapping[str, Any]) -> datetime:
        if given["zone"] and given["zone"] != self._zone_name:
            raise forms.ValidationError(
                {
                    "time": f"The time was typed in {given['zone']}, and this browser shows"
                    f" {self._zone_name} now. Look at the time again, then preview."
                }
            )
        try:
            found = moments.read(given["time"], zone=self._zone, now=self._now)
        except moments.NotAMoment as wrong:
            raise forms.ValidationError({"time": f"{wrong.message}: {wrong.next_step}."}) from None
        if not found:
            raise forms.ValidationError(
                {
                    "time": f"There is no {given['time'].replace('T', ' ')} in {self._zone_name}:"
                    " clocks go forward over that hour. Give a time before or after it."
                }
            )
        chosen = [at for at in found if at.isoformat() == given["moment"]]
        if len(found) > 1 and not chosen:
            self.twice = found
            raise forms.ValidationError(
                {
                    "moment": f"Clocks in {self._zone_name} show {given['time'].replace('T', ' ')}"
                    " twice that night. Choose which one is meant."
                }
            )
        return (chosen or found)[0]

    def _topics(self, given: Mapping[str, Any]) -> Mapping[str, tuple[int, ...]]:
        """Parse one topic per line or word: orders, or some of its partitions as orders:0,1."""
        try:
            topics = parse_topics((*self.chosen(), *given["topics"].split()))
        except PlanError as error:
            raise forms.ValidationError({"topics": f"{error}."}) from None
        if not topics:
            raise forms.ValidationError({"topics": "Choose topics or name some, or take all."})
        return topics

    def _places(self, file: "UploadedFile[bytes]") -> Mapping[Place, int]:
        content = file.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise forms.ValidationError(
                {"file": f"The file is larger than {MAX_FILE_BYTES} bytes. Divide it."}
            )
        try:
            return parse_csv(content.decode("utf-8-sig"), self._group)
        except UnicodeDecodeError as error:
            raise forms.ValidationError(
                {"file": f"The file is not UTF-8 text: {error.reason}."}
            ) from None
        except PlanError as error:
            raise forms.ValidationError({"file": f"The file cannot be used: {error}."}) from None

    def chosen(self) -> list[str]:
        """Return the ticked topics, at most MAX_TICKED."""
        getlist = getattr(self.data, "getlist", None)
        return [] if getlist is None else getlist("topic")[:MAX_TICKED]

    def told(self) -> dict[str, str]:
        """Return the request as fields of a link; empty if the link would be too long."""
        needed, _ = NEEDS.get(self.cleaned_data["mode"], ("", ""))
        topics = "\n".join((*self.chosen(), *self.cleaned_data["topics"].split()))
        given = {name: self.data.get(name, "") for name in TOLD if name in KEPT or name == needed}
        if needed == "time" and self.asked is not None:
            # The typed clock time would mean another moment in another zone.
            given["time"] = moments.instant(moments.at(self.asked.goal.value))
        given |= {"topics": topics, "unit": self.data.get("unit", "") if needed == AGO else ""}
        told = {name: str(text) for name, text in given.items() if text}
        return told if len(urlencode(told)) <= MAX_TOLD_CHARS else {}

    def twice_shown(self) -> list[tuple[str, str, str]]:
        """Return both moments: as the form sends them, in the zone with its offset, and in UTC."""
        return [
            (at.isoformat(), times.exact(at), f"{at:%Y-%m-%d %H:%M:%S} UTC") for at in self.twice
        ]
