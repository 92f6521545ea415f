"""Validates combinations of keys in a config, by rules of Kafka Connect and of Samsa."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from connectors import framework_keys as keys
from connectors.components import NEGATE, PREDICATE, names_in
from connectors.runtime.retry_topic import is_retry_topic
from connectors.runtime.transforms import new_record_state
from gateway.kafka.topic_pattern import BadPattern, TopicPattern

# A problem: a key, and an error message.
Wrong = tuple[str, str]
Rule = Callable[[Mapping[str, str], Mapping[str, Any]], Iterator[Wrong]]
# The error for both keys of a sink's topics if neither is set.
NO_TOPICS: Final = "Must configure one of topics or topics.regex"
# The length of a pattern in an error message.
MAX_SHOWN_CHARS: Final = 200
# A key of sinks that can empty a table, and the transform that drops the event.
TRUNCATE: Final = "truncate.enabled"
UNWRAP: Final = "ExtractNewRecordState"
# Keys of sinks that jobs do not have.
NOT_OF_JOBS: Final = (keys.TRANSFORMS, keys.PREDICATES, *keys.CONVERTERS)


def found_wrong(kind: str, config: Mapping[str, str], parsed: Mapping[str, Any]) -> Iterator[Wrong]:
    """Yield the problems of contradictory keys, and of keys that refer to missing parts."""
    for rule in (*RULES[kind], _predicates):
        yield from rule(config, parsed)


def found_doubtful(config: Mapping[str, str]) -> Iterator[Wrong]:
    """Yield combinations that work, and do not what one of their keys promises."""
    if config.get(TRUNCATE, "").strip().lower() != "true":
        return
    for name in names_in(config, keys.TRANSFORMS):
        prefix = f"{keys.TRANSFORMS}.{name}."
        is_unwrapping = config.get(f"{prefix}type", "").strip().endswith(UNWRAP)
        mode = f"{prefix}{new_record_state.TRUNCATIONS}"
        if is_unwrapping and config.get(mode, "").strip() != new_record_state.KEEP:
            yield (
                mode,
                (
                    f"{TRUNCATE} is true, and the transform {name} drops the event of a TRUNCATE:"
                    f" set {mode}={new_record_state.KEEP}"
                ),
            )


def _topics(_config: Mapping[str, str], parsed: Mapping[str, Any]) -> Iterator[Wrong]:
    # The value of a missing key is a reference to a secret, so the key counts as set.
    topics, pattern = parsed.get(keys.TOPICS, "?"), parsed.get(keys.TOPICS_REGEX, "?")
    both = (keys.TOPICS, keys.TOPICS_REGEX)
    if topics and pattern:
        text = "topics and topics.regex are mutually exclusive options, but both are set."
        yield from ((key, text) for key in both)
    elif not topics and not pattern:
        yield from ((key, NO_TOPICS) for key in both)
    if isinstance(topics, list):
        if any(not topic for topic in topics):
            yield keys.TOPICS, "Configuration 'topics' values must not be empty."
        elif len(set(topics)) < len(topics):
            yield keys.TOPICS, "Configuration 'topics' values must not be duplicated."


def _pattern(_config: Mapping[str, str], parsed: Mapping[str, Any]) -> Iterator[Wrong]:
    pattern = parsed.get(keys.TOPICS_REGEX)
    if not pattern:
        return
    try:
        TopicPattern(pattern)
    except BadPattern as error:
        shown = pattern[:MAX_SHOWN_CHARS]
        prefix = f"Invalid value {shown} for configuration {keys.TOPICS_REGEX}: Invalid regex"
        yield keys.TOPICS_REGEX, f"{prefix}: {error}"


def _retry_topics(_config: Mapping[str, str], parsed: Mapping[str, Any]) -> Iterator[Wrong]:
    """Refuse retry topics, which connectors read automatically."""
    topics = parsed.get(keys.TOPICS)
    for name in topics if isinstance(topics, list) else ():
        if is_retry_topic(name):
            yield (
                keys.TOPICS,
                (
                    f"The topic '{name}' has the name of a retry topic, which only its connector"
                    " reads: take it out of the list"
                ),
            )
    name = parsed.get(keys.DEAD_LETTERS)
    if name and is_retry_topic(name):
        yield (
            keys.DEAD_LETTERS,
            (
                f"The topic '{name}' has the name of a retry topic, so a connector would read the"
                " dead letters again at once: name another topic"
            ),
        )


def _dead_letters(_config: Mapping[str, str], parsed: Mapping[str, Any]) -> Iterator[Wrong]:
    name, topics = parsed.get(keys.DEAD_LETTERS), parsed.get(keys.TOPICS)
    if not name:
        return
    if isinstance(topics, list) and name in topics:
        yield (
            keys.TOPICS,
            (
                f"The DLQ topic '{name}' may not be included in the list of topics "
                f"('topics=[{', '.join(topics)}]') consumed by the connector"
            ),
        )
    pattern = parsed.get(keys.TOPICS_REGEX)
    if not pattern:
        return
    try:
        is_matched = bool(TopicPattern(pattern).among([name]))
    except BadPattern:
        return  # said of the pattern itself
    if is_matched:
        yield (
            keys.TOPICS_REGEX,
            (
                f"The DLQ topic '{name}' may not be matched by the regex for the topics "
                f"('topics.regex={pattern}') consumed by the connector"
            ),
        )


def _exactly_once(_config: Mapping[str, str], parsed: Mapping[str, Any]) -> Iterator[Wrong]:
    if str(parsed.get(keys.EXACTLY_ONCE, "")).upper() == "REQUIRED":
        yield (
            keys.EXACTLY_ONCE,
            "This worker does not have exactly-once source support enabled.",
        )
    if str(parsed.get(keys.BOUNDARY, "")).upper() == "CONNECTOR":
        yield (
            keys.BOUNDARY,
            (
                "The connector does not support connector-defined transaction boundaries with the"
                " given configuration. Please reconfigure it to use a different transaction"
                " boundary definition."
            ),
        )


def _predicates(config: Mapping[str, str], _parsed: Mapping[str, Any]) -> Iterator[Wrong]:
    declared = names_in(config, keys.PREDICATES)
    for name in names_in(config, keys.TRANSFORMS):
        prefix = f"{keys.TRANSFORMS}.{name}."
        wanted = config.get(f"{prefix}{PREDICATE}")
        if wanted is None and f"{prefix}{NEGATE}" in config:
            yield (
                f"{prefix}type",
                (
                    f"Config '{prefix}{NEGATE}' was provided but there is no config "
                    f"'{prefix}{PREDICATE}' defining a predicate to be negated."
                ),
            )
        if wanted is not None and wanted.strip() not in declared:
            yield (
                f"{prefix}{PREDICATE}",
                (
                    f"Invalid value {wanted} for configuration {prefix}{PREDICATE}: no predicate"
                    f" has this name; those of the config are [{', '.join(declared)}]"
                ),
            )


def _no_steps(config: Mapping[str, str], _parsed: Mapping[str, Any]) -> Iterator[Wrong]:
    """Refuse keys that a job would ignore, such as a transform that masks fields."""
    for key in NOT_OF_JOBS:
        if config.get(key, "").strip():
            yield (
                key,
                (
                    f"{key} is set, but this connector reads topics with its own engine, without"
                    " transforms and converters: leave it out, or have another connector do it"
                    " first"
                ),
            )


RULES: Final[Mapping[str, tuple[Rule, ...]]] = {
    "sink": (_topics, _pattern, _retry_topics, _dead_letters),
    "source": (_exactly_once,),
    "job": (_topics, _pattern, _retry_topics, _dead_letters, _no_steps),
}
