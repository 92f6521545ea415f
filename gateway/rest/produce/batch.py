"""Produces a batch of version 3: several records in one body, each written or refused by itself."""

from collections.abc import Sequence
from typing import Final

import msgspec

from gateway.kafka.errors import KafkaFailure
from gateway.kafka.values import Delivered
from gateway.rest.calls import Call
from gateway.rest.codes import ApiError, Code
from gateway.rest.produce.desk import Desk, Outcome, require_json
from gateway.rest.produce.drafts import Draft, entry_drafted
from gateway.rest.produce.receipts import Wording, api_error, in_stream
from gateway.rest.produce.splitter import Malformed

# The limits of the published interface.
MAX_ENTRIES: Final = 10
MAX_ID_CHARS: Final = 80
MULTI_STATUS: Final = 207


class Named(msgspec.Struct):
    """The part of an entry that is parsed before anything is written."""

    id: str = ""


class Batch(msgspec.Struct, forbid_unknown_fields=True):
    entries: list[msgspec.Raw]


BATCHES: Final = msgspec.json.Decoder(Batch)
NAMES: Final = msgspec.json.Decoder(Named)


async def produce_batch(call: Call, desk: Desk) -> None:
    """Serve `POST …/records:batch`."""
    require_json(call)
    topic = await desk.topic_of(call)
    wording = Wording(call.cluster_id, topic)
    async with desk.body(call) as body:
        entries = entries_of(body)
        drafts = [drafted_entry(bytes(text)) for _, text in entries]
        records = [each.record for each in drafts if isinstance(each, Draft)]
        await desk.admit(call, records)
        if records:
            await desk.ready(call.caller, topic, None)
        # Send in turn, so that records are written in their order; receipts come together.
        sent = [await sent_entry(call, desk, topic, draft) for draft in drafts]
    successes, failures = [], []
    for (name, _), draft, told_later in zip(entries, drafts, sent, strict=True):
        told = told_later if isinstance(told_later, ApiError) else await told_later
        if isinstance(told, Delivered):
            assert isinstance(draft, Draft)
            successes.append({"id": name, **wording.fields(told, draft)})
        else:
            call.errors += 1
            failures.append({"id": name, **in_stream(api_error(told))})
    await call.answer(MULTI_STATUS, {"successes": successes, "failures": failures})


def entries_of(body: bytes) -> Sequence[tuple[str, msgspec.Raw]]:
    """Return entries by their ids. Raises ApiError if entries cannot be told apart."""
    try:
        body.decode()
        entries = BATCHES.decode(body).entries
        named = [(NAMES.decode(entry).id, entry) for entry in entries]
    except msgspec.ValidationError as error:
        raise bad_batch(f"{error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ApiError(Code.BAD_REQUEST, f"the body is not JSON in UTF-8: {error}") from None
    if not 1 <= len(named) <= MAX_ENTRIES:
        raise bad_batch(f"it has {len(named)} entries: send 1 to {MAX_ENTRIES}")
    seen: set[str] = set()
    for name, _ in named:
        if not 1 <= len(name) <= MAX_ID_CHARS:
            raise bad_batch(
                f"the id {name[:MAX_ID_CHARS]!r} has {len(name)} characters: "
                f"give each entry one of 1 to {MAX_ID_CHARS}"
            )
        if name in seen:
            raise bad_batch(f"two entries have the id {name!r}: give each its own")
        seen.add(name)
    return named


def bad_batch(what: str) -> ApiError:
    return ApiError(Code.BAD_BATCH, f"Batch error. {what}")


def drafted_entry(text: bytes) -> Draft | ApiError:
    """Parse one entry; return the error of one that cannot be written."""
    try:
        return entry_drafted(text)
    except Malformed as error:
        return ApiError(Code.BAD_REQUEST, str(error))
    except ApiError as error:
        return error


async def sent_entry(call: Call, desk: Desk, topic: str, draft: Draft | ApiError) -> Outcome:
    """Send one entry; return its outcome as a future, or at once as an error."""
    if isinstance(draft, ApiError):
        return draft
    try:
        return await desk.sent(call, topic, draft.record)
    except (ApiError, KafkaFailure) as failed:
        return api_error(failed)
