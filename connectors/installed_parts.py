"""Lists the converters, transforms and predicates of this release."""

from typing import Final

from connectors.components import Components
from connectors.runtime import converters, part_problems, predicates, transforms

INSTALLED: Final = Components(
    converters=converters.CLASSES,
    header_converters=converters.HEADER_CLASSES,
    transforms=transforms.CLASSES,
    predicates=predicates.CLASSES,
    problems=part_problems.problems,
)
