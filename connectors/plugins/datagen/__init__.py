"""Generates records for experiments."""

from connectors.plugins.datagen.connector import Datagen

CONNECTORS = (Datagen,)
