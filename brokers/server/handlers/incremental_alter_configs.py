"""IncrementalAlterConfigs: changes single keys of a resource and leaves the others alone."""

from typing import Final

from brokers.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from brokers.server.admin_outcomes import error_fields
from brokers.server.call import Call
from brokers.server.config_resources import Alteration, Edit, alter
from brokers.server.context import Context
from brokers.server.served_api import Served

SERVED: Final = Served(key=44)


async def handle(
    context: Context, call: Call, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    alterations = [
        Alteration(
            kind=resource.resource_type,
            name=resource.resource_name,
            edits=[
                Edit(key=config.name, operation=config.config_operation, value=config.value)
                for config in resource.configs
            ],
            replaces_all=False,
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
    return IncrementalAlterConfigsResponse(responses=responses)
