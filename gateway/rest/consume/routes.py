"""Declares the calls of version 2 consumers, from any worker to the one that has the consumer."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Final
from urllib.parse import quote

from gateway.access.callers import Caller
from gateway.access.operations import Kind, Operation
from gateway.rest.calls import Call, Gone
from gateway.rest.codes import ApiError
from gateway.rest.consume import actions, bodies, names
from gateway.rest.consume.actions import NO_CONTENT, Asked, Serve
from gateway.rest.consume.bodies import EMBEDDED, MAX_BODY_BYTES, V2
from gateway.rest.consume.ending import Ending
from gateway.rest.consume.instances import CLAIMS, Instances, claim_of, not_found, seats_with
from gateway.rest.consume.passing import Passed, Passing, query_of
from gateway.rest.gate import Right
from gateway.rest.route import PASSED, UNPROCESSABLE, Route
from gateway.rest.worker import Worker

GROUP: Final = "/consumers/{group}"
INSTANCE: Final = f"{GROUP}/instances/{{instance}}"
TAG: Final = "Records"
# Reading as a member moves the offsets of its group.
READ_AS: Final = (Right(operation=Operation.RESET_GROUPS, kind=Kind.GROUP, name="group"),)
ERRORS: Final = {
    409: "The consumer exists (40902), or is not in the state for this call (40901, 40903).",
    **UNPROCESSABLE,
}


@dataclass(frozen=True, slots=True)
class Action:
    """A call of an instance: its row, and the function that executes it where the instance is."""

    route: Route
    serve: Serve
    is_fetch: bool = False


class Room:
    """The consumers of a worker. Created before the loop runs, and used in it."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._passing = Passing(worker.place, prefix=PASSED)

    @cached_property
    def instances(self) -> Instances:
        worker = self._worker
        return worker.held(
            Instances(
                worker.name,
                connection=lambda: worker.connection,
                names_of=worker.readers.names,
                create_topics=worker.creation.create_all,
                claims=lambda: worker.shared,
                roster=worker.roster,
                has_elsewhere=self._has_elsewhere,
                seats=seats_with(worker.ledger),
            )
        )

    async def create(self, call: Call) -> None:
        group = call.parameters["group"]
        names.check("group", group)
        async with self._worker.incoming.whole(call, MAX_BODY_BYTES) as text:
            draft = bodies.draft_of(bodies.body_of(call, text))
        made = await self.instances.create(group, draft, call.caller)
        before = call.scope["path"].partition("/consumers/")[0]
        base = (
            f"{call.origin}{before}/consumers/"
            f"{quote(group, safe='')}/instances/{quote(made.name, safe='')}"
        )
        await call.answer(200, {"instance_id": made.name, "base_uri": base}, content_type=V2)

    async def anywhere(self, call: Call, *, action: Action) -> None:
        """Serve a call here, or pass it to the worker that has the consumer."""
        ending = Ending()
        if not action.is_fetch:
            await self._served(action, call, ending)
            return
        try:
            async with ending.watched(call, self._worker.callers.watch):
                await self._served(action, call, ending)
        except ApiError:
            if call.is_started:
                # The length was already sent: breaking off marks the answer as incomplete.
                raise Gone from None
            raise

    async def _served(self, action: Action, call: Call, ending: Ending) -> None:
        async with self._worker.incoming.whole(call, MAX_BODY_BYTES) as text:
            await self._served_with(action, call, ending, text)

    async def _served_with(self, action: Action, call: Call, ending: Ending, text: bytes) -> None:
        group, name = call.parameters["group"], call.parameters["instance"]
        instance = self.instances.find(group, name)
        if instance is not None:
            instance.require(call.caller)
            body = bodies.body_of(call, text)
            await action.serve(
                Asked(
                    call=call,
                    instances=self.instances,
                    instance=instance,
                    body=body,
                    is_passed=False,
                    ending=ending,
                )
            )
            return
        passed = Passed(
            method=action.route.method,
            group=group,
            instance=name,
            under=action.route.path.removeprefix(INSTANCE),
            query=query_of(call),
            accept=call.headers.get("accept", "*/*"),
            content_type=call.headers.get("content-type", ""),
            body=text,
            is_fetch=action.is_fetch,
        )
        async with ending.cut():
            for worker in await self._owners(group, name):
                # If it is interrupted, the other worker sees that its client has disconnected.
                if await self._passing.pass_on(call, passed, worker):
                    return
        raise not_found(name)

    async def here(self, call: Call, *, action: Action) -> None:
        group, name = call.parameters["group"], call.parameters["instance"]
        instance = self.instances.find(group, name)
        if instance is None:
            raise not_found(name)
        if action is not EXIST:
            instance.require(call.caller)
        # The request body of a fetch ends when its records were taken.
        text = b"" if action.is_fetch else await call.body(MAX_BODY_BYTES)
        await action.serve(
            Asked(
                call=call,
                instances=self.instances,
                instance=instance,
                body=bodies.body_of(call, text),
                is_passed=True,
            )
        )

    async def _owners(self, group: str, name: str) -> Sequence[str]:
        """Return the workers that may have a consumer which is not here."""
        others = self._passing.others()
        first = names.owner_in(group, name)
        if first is not None and first in others:
            # The others come next: it may have been deleted there, and created again elsewhere.
            return [first, *(other for other in others if other != first)]
        owner = await self._worker.shared.owner_of(CLAIMS, claim_of(group, name))
        if owner is None:
            # Shared claims may have been lost: ask each of the others.
            return others
        return [owner] if owner in others else []

    async def _has_elsewhere(
        self, caller: Caller, group: str, name: str, worker: str | None
    ) -> bool:
        """Tell whether a given worker, or any other one, has a consumer."""
        for other in [worker] if worker is not None else self._passing.others():
            if await self._passing.has(caller, group, name, other):
                return True
        return False


# A row of a consumer, or of one of its instances.
_row = partial(Route, room=Room, rights=READ_AS, error_type=V2, gives=(V2,), tag=TAG, errors=ERRORS)
ACTIONS: Final = (
    Action(
        _row(
            method="DELETE",
            path=INSTANCE,
            summary="Delete a consumer instance.",
            status=NO_CONTENT,
            takes=(V2,),
        ),
        actions.delete,
    ),
    Action(
        _row(
            method="POST",
            path=f"{INSTANCE}/subscription",
            summary="Subscribe to topics, or to a pattern.",
            status=NO_CONTENT,
            takes=(V2,),
        ),
        actions.subscribe,
    ),
    Action(
        _row(
            method="GET",
            path=f"{INSTANCE}/subscription",
            summary="Show what an instance is subscribed to.",
        ),
        actions.subscription,
    ),
    Action(
        _row(
            method="DELETE",
            path=f"{INSTANCE}/subscription",
            summary="Unsubscribe from all topics.",
            status=NO_CONTENT,
        ),
        actions.unsubscribe,
    ),
    Action(
        _row(
            method="POST",
            path=f"{INSTANCE}/assignments",
            summary="Assign partitions by hand.",
            status=NO_CONTENT,
            takes=(V2,),
        ),
        actions.assign,
    ),
    Action(
        _row(
            method="GET",
            path=f"{INSTANCE}/assignments",
            summary="Show the partitions that an instance reads.",
        ),
        actions.assignments,
    ),
    Action(
        _row(
            method="GET",
            path=f"{INSTANCE}/records",
            summary="Fetch records.",
            gives=tuple(EMBEDDED.values()),
            query=("timeout", "max_bytes"),
        ),
        actions.fetch,
        is_fetch=True,
    ),
    Action(
        _row(
            method="POST",
            path=f"{INSTANCE}/offsets",
            summary="Commit offsets: those in the body, or those of all fetched records.",
            takes=(V2,),
        ),
        actions.commit,
    ),
    Action(
        _row(
            method="GET",
            path=f"{INSTANCE}/offsets",
            summary="Show committed offsets; the partitions are in the body.",
            takes=(V2,),
        ),
        actions.committed,
    ),
    Action(
        _row(
            method="POST",
            path=f"{INSTANCE}/positions",
            summary="Seek to offsets.",
            status=NO_CONTENT,
            takes=(V2,),
        ),
        actions.seek,
    ),
    Action(
        _row(
            method="POST",
            path=f"{INSTANCE}/positions/beginning",
            summary="Seek to the beginning.",
            status=NO_CONTENT,
            takes=(V2,),
        ),
        actions.seek_beginning,
    ),
    Action(
        _row(
            method="POST",
            path=f"{INSTANCE}/positions/end",
            summary="Seek to the end.",
            status=NO_CONTENT,
            takes=(V2,),
        ),
        actions.seek_end,
    ),
)
# Only other workers call this.
EXIST: Final = Action(Route(method="GET", path=INSTANCE), actions.exist)

ROUTES: Final = (
    _row(
        method="POST",
        path=GROUP,
        handler=Room.create,
        summary="Create a consumer instance of a group.",
        takes=(V2,),
    ),
    *(replace(each.route, handler=partial(Room.anywhere, action=each)) for each in ACTIONS),
)
# For other workers; these calls are never passed on again, and are not described.
PASSED_ROUTES: Final = tuple(
    Route(
        method=each.route.method,
        path=each.route.path,
        room=Room,
        handler=partial(Room.here, action=each),
        rights=READ_AS,
        error_type=V2,
    )
    for each in (*ACTIONS, EXIST)
)
