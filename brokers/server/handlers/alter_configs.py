"""AlterConfigs: replaces all that is set for a resource.

The older of two requests: whatever it does not name goes back to its default.
"""

from typing import Final

from brokers.cluster.proposals import ConfigOperation
from brokers.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from brokers.server.admin_outcomes import error_fields
from brokers.server.call import Call
from brokers.server.config_resources import Alteration, Edit, alter
from brokers.server.context import Context
from brokers.server.served_api import Served

SERVED: Final = Served(key=33)


async def handle(
    context: Context, call: Call, request: AlterConfigsRequest
) -> AlterConfigsResponse:
    alterations = [
        Alteration(
            kind=resource.resource_type,
            name=resource.resource_name,
            edits=[
                Edit(key=config.name, operation=ConfigOperation.SET, value=config.value)
                for config in resource.configs
            ],
            replaces_all=True,
        )
        for resource in request.resources
    ]
    outcomes = await alter(context, call, alterations, validate_only=request.validate_only)
    responses = []
    for alteration, outcome in zip(alterations, outcomes, strict=True):
        error, message = error_fields(outcome)
        responses.append(
            AlterConfigsResourceResponse(
                error_code=error,
                error_message=message,
                resource_type=alteration.kind,
                resource_name=alteration.name,
            )
        )
    return AlterConfigsResponse(responses=responses)
