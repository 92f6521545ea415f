"""Consumers of version 2: group members that a program drives by HTTP calls."""
