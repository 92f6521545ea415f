"""IncrementalAlterConfigs: changes single keys of a resource and leaves the others unchanged."""

from typing import Final

from brokers.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from brokers.server.call import Call
from brokers.server.config_resources import Alteration, Edit, alter
from brokers.server.context import Context
from brokers.server.served_api import Served

SERVED: Final = Served(key=44, waits=True)


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
    responses = await alter(
        context,
        call,
        alterations,
        AlterConfigsResourceResponse,
        validate_only=request.validate_only,
    )
    return IncrementalAlterConfigsResponse(responses=responses)
