"""The stages on which administrators' calls are made: a group in a certain state, set up raw.

Members here neither read nor send heartbeats, so a stage stays as it is for as long as a row takes.
"""

from enum import StrEnum

from tests.raw_groups import Coordinated, GroupError, Place, patiently

READ, OTHER, NOWHERE = "read", "other", "nowhere"
PARTITIONS = 2
# What every stage but the first has committed.
COMMITTED: dict[Place, int] = {(READ, 0): 3, (OTHER, 0): 4}
INSTANCE = "instance-1"


class Stage(StrEnum):
    """What there is before the call."""

    ABSENT = "absent"
    SIMPLE = "simple"  # offsets, and never a member
    LEFT = "left"  # of the classic protocol, and its member has left
    STATIC = "static"  # of the classic protocol, with a static member that reads READ
    DYNAMIC = "dynamic"  # the same with a dynamic one
    CONSUMER = "consumer"  # of the consumer protocol, with a member that reads READ
    ENTERED = "entered"  # of the consumer protocol, and its member has left


def set_up(bootstrap: str, group: str, stage: Stage) -> Coordinated:
    """Make a group that is on this stage, and return the way to it."""
    opened = Coordinated(bootstrap, group)
    if stage is Stage.SIMPLE:
        patiently(lambda: opened.commit(COMMITTED))
    elif stage in (Stage.LEFT, Stage.STATIC, Stage.DYNAMIC):
        _set_up_classic(opened, stage)
    elif stage in (Stage.CONSUMER, Stage.ENTERED):
        member_id, epoch = patiently(lambda: opened.enter([READ]))
        opened.commit(COMMITTED, member_id=member_id, generation=epoch)
        if stage is Stage.ENTERED:
            opened.beat(member_id, -1)
    return opened


def _set_up_classic(opened: Coordinated, stage: Stage) -> None:
    instance_id = INSTANCE if stage is Stage.STATIC else None
    joined = patiently(lambda: opened.join([READ], instance_id=instance_id))
    member_id, generation = joined.member_id, joined.generation_id
    assigned = {member_id: {READ: range(PARTITIONS)}}
    opened.sync(member_id, generation, assigned, instance_id=instance_id)
    opened.commit(COMMITTED, member_id=member_id, generation=generation)
    if stage is Stage.LEFT:
        opened.leave(member_id)


# -- what a row may look at afterwards -------------------------------------------------------------


def offsets(opened: Coordinated) -> dict[Place, int] | str:
    try:
        return opened.offsets()
    except GroupError as error:
        return error.code.name


def state(opened: Coordinated) -> str | None:
    """The group's state, None where it is not there."""
    listed = opened.listed()
    return None if listed is None else str(listed.group_state)
