"""DeleteGroups: deletes groups without members, of both protocols, with all their offsets.

Each group is its own operation, and the response follows when the last one is safe. A group that is
named twice is deleted and answered once. The empty id is a group like any other here, since offsets
may be committed to it.
"""

from typing import Final

from brokers.coordination.groups.offset_operations import delete_group
from brokers.coordination.shard import Answer
from brokers.protocol.errors import KafkaError
from brokers.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from brokers.server.call import Call
from brokers.server.context import Context
from brokers.server.handlers.group_answers import Gathered
from brokers.server.handlers.group_descriptions import excess
from brokers.server.served_api import Served

SERVED: Final = Served(key=42)


def handle(
    context: Context, call: Call, request: DeleteGroupsRequest
) -> DeleteGroupsResponse | None:
    group_ids = list(dict.fromkeys(request.groups_names))
    wrong = excess(len(group_ids))
    if wrong is not None or not group_ids:
        return DeleteGroupsResponse(results=[_result(group_id, wrong) for group_id in group_ids])

    def done(answers: list[Answer]) -> None:
        results = [
            _result(group_id, answer if isinstance(answer, KafkaError) else None)
            for group_id, answer in zip(group_ids, answers, strict=True)
        ]
        call.answer(DeleteGroupsResponse(results=results))

    gathered = Gathered(len(group_ids), done)
    for index, group_id in enumerate(group_ids):
        operation = delete_group(group_id, DeletableGroupResult(group_id=group_id))
        context.groups.submit(group_id, operation, gathered.take(index))
    return None


def _result(group_id: str, error: KafkaError | None) -> DeletableGroupResult:
    if error is None:
        return DeletableGroupResult(group_id=group_id)
    return DeletableGroupResult(group_id=group_id, error_code=error.code)
