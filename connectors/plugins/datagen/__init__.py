"""Made-up records, to try things out with."""

from connectors.plugins.datagen.connector import Datagen

CONNECTORS = (Datagen,)
