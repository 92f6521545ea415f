"""Consumers of version 2: members of groups that a program drives by calls."""
