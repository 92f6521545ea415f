"""Lists the operations that can be allowed, and the roles that include them, as closed tables.

Must not know Django. An operation applies to resources of certain kinds; an operation of the kind
CONSOLE concerns all clusters at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final


class Kind(Enum):
    """The kinds of resources that rights are granted on."""

    CONSOLE = "console"
    CLUSTER = "cluster"
    TOPIC = "topic"
    GROUP = "group"
    CONNECTOR = "connector"
    # Targets of references in connector configs: the home's secrets, workers' files and variables.
    SECRET = "secret"  # noqa: S105 - a word
    # Files of the home that connectors read and write, by their paths below its folder `files`.
    FILE = "file"


class Operation(Enum):
    VIEW = "view"
    READ_PAYLOADS = "read-payloads"
    EXPORT = "export"
    PRODUCE = "produce"
    CREATE_TOPICS = "create-topics"
    ALTER_TOPICS = "alter-topics"
    DELETE_TOPICS = "delete-topics"
    ALTER_CONFIGS = "alter-configs"
    RESET_GROUPS = "reset-groups"
    DELETE_GROUPS = "delete-groups"
    MANAGE_BROKERS = "manage-brokers"
    CREATE_CONNECTORS = "create-connectors"
    ALTER_CONNECTORS = "alter-connectors"
    OPERATE_CONNECTORS = "operate-connectors"
    DELETE_CONNECTORS = "delete-connectors"
    USE_SECRETS = "use-secrets"
    READ_FILES = "read-files"
    WRITE_FILES = "write-files"
    VIEW_AUDIT = "view-audit"
    MANAGE_USERS = "manage-users"
    MANAGE_TOKENS = "manage-tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One operation: the words after "may", a sentence for the granting user, and its kinds."""

    verb: str
    sentence: str
    kinds: frozenset[Kind]


def _row(verb: str, sentence: str, *kinds: Kind) -> Row:
    return Row(verb=verb, sentence=sentence, kinds=frozenset(kinds))


OPERATIONS: Final[Mapping[Operation, Row]] = MappingProxyType(
    {
        Operation.VIEW: _row(
            "view",
            "See names, states, configs, offsets and lag, but no record.",
            *(Kind.CLUSTER, Kind.TOPIC, Kind.GROUP, Kind.CONNECTOR),
        ),
        Operation.READ_PAYLOADS: _row(
            "read payloads", "See keys, values and headers of records.", Kind.TOPIC
        ),
        Operation.EXPORT: _row(
            "export", "Download records and tables that hold records.", Kind.TOPIC
        ),
        Operation.PRODUCE: _row("produce", "Write records, replays included.", Kind.TOPIC),
        Operation.CREATE_TOPICS: _row("create topics", "Create topics.", Kind.TOPIC),
        Operation.ALTER_TOPICS: _row(
            "alter topics", "Add partitions, move replicas, delete records.", Kind.TOPIC
        ),
        Operation.DELETE_TOPICS: _row(
            "delete topics", "Delete topics with all of their records.", Kind.TOPIC
        ),
        Operation.ALTER_CONFIGS: _row(
            "alter configs",
            "Set and unset configs of topics, groups and brokers.",
            *(Kind.CLUSTER, Kind.TOPIC, Kind.GROUP),
        ),
        Operation.RESET_GROUPS: _row(
            "reset groups", "Change or delete committed offsets of groups.", Kind.GROUP
        ),
        Operation.DELETE_GROUPS: _row("delete groups", "Delete groups.", Kind.GROUP),
        Operation.MANAGE_BROKERS: _row(
            "manage brokers", "Start, stop and restart brokers.", Kind.CLUSTER
        ),
        Operation.CREATE_CONNECTORS: _row(
            "create connectors",
            "Create connectors, which copy records into and out of the cluster.",
            Kind.CONNECTOR,
        ),
        Operation.ALTER_CONNECTORS: _row(
            "alter connectors", "Change configs and offsets of connectors.", Kind.CONNECTOR
        ),
        Operation.OPERATE_CONNECTORS: _row(
            "operate connectors", "Pause, resume and restart connectors.", Kind.CONNECTOR
        ),
        Operation.DELETE_CONNECTORS: _row(
            "delete connectors", "Delete connectors.", Kind.CONNECTOR
        ),
        Operation.USE_SECRETS: _row(
            "use secrets",
            "Refer to secrets in configs of connectors, which send them where the config says.",
            Kind.SECRET,
        ),
        Operation.READ_FILES: _row(
            "read files", "Have connectors read files of the home.", Kind.FILE
        ),
        Operation.WRITE_FILES: _row(
            "write files", "Have connectors write files and tables of the home.", Kind.FILE
        ),
        Operation.VIEW_AUDIT: _row(
            "view the audit log", "See who changed what, on every cluster.", Kind.CONSOLE
        ),
        Operation.MANAGE_USERS: _row(
            "manage users",
            "Create, change and delete users and their rights, one's own included.",
            Kind.CONSOLE,
        ),
        Operation.MANAGE_TOKENS: _row(
            "manage tokens", "Create and revoke API tokens of other users.", Kind.CONSOLE
        ),
    }
)


class Role(Enum):
    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleRow:
    """The operations of a role, and a sentence for the granting user."""

    sentence: str
    operations: frozenset[Operation]


# Rights over other users' rights; a data operator has none of them.
GOVERNING: Final = frozenset(
    {Operation.VIEW_AUDIT, Operation.MANAGE_USERS, Operation.MANAGE_TOKENS}
)
# A config can send a secret to any server, so the right to run connectors does not include them.
ENTRUSTED: Final = frozenset({Operation.USE_SECRETS})
ROLES: Final[Mapping[Role, RoleRow]] = MappingProxyType(
    {
        Role.VIEWER: RoleRow(
            sentence="Sees everything but records, and changes nothing.",
            operations=frozenset({Operation.VIEW}),
        ),
        Role.OPERATOR: RoleRow(
            sentence=(
                "Reads and writes records and files, runs topics, groups, brokers and connectors;"
                " uses no secrets."
            ),
            operations=frozenset(Operation) - GOVERNING - ENTRUSTED,
        ),
        Role.ADMIN: RoleRow(
            sentence="Does everything, users and the audit log included.",
            operations=frozenset(Operation),
        ),
    }
)
