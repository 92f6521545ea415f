"""Marks the parts of a text that may repeat records, which only readers of their topics see.

Pure. Errors quote the records that they are about, and users who may see a connector may not be
allowed to see records. The mark is in the stored text, with the topics, so that nothing that
stores, cuts or joins texts can lose it; `connectors.selectors` decides by it what a user sees.
"""

import re
from collections.abc import Callable, Collection
from typing import Final

BEGIN, TOPICS_END, END = "\x02", "\x1f", "\x03"
# A cut text has no end.
PART: Final = re.compile(f"{BEGIN}([^{TOPICS_END}]*)(?:{TOPICS_END}([^{END}]*))?(?:{END}|$)")
OUR_CHARACTERS: Final = str.maketrans("", "", BEGIN + TOPICS_END + END)
# More topics than a task usually reads: then the part needs a right on all topics.
MAX_TOPICS: Final = 20

# Tells whether a user may read the records of some topics; of all, if there are none.
MayRead = Callable[[Collection[str]], bool]


def marked(text: str, topics: Collection[str]) -> str:
    """Return a text as a part that may repeat records of some topics; of any, if none is known."""
    named = ",".join(sorted(topics)) if len(topics) <= MAX_TOPICS else ""
    inner = text.translate(OUR_CHARACTERS)
    return f"{BEGIN}{named}{TOPICS_END}{inner}{END}" if inner else ""


def shown(text: str, may_read: MayRead) -> str:
    """Return a text for a user, with a note in the place of parts that they may not read."""

    def judged(part: re.Match[str]) -> str:
        topics = [topic for topic in part[1].split(",") if topic]
        if may_read(topics):
            return part[2] or ""
        where = f"topic {', '.join(topics)}" if topics else "all topics"
        return f"[hidden: it may repeat records, and you may not read payloads on {where}]"

    return PART.sub(judged, text)


def bare(text: str) -> str:
    """Return a text without marks, for logs that only the home's owner can read."""
    return shown(text, lambda _topics: True)
