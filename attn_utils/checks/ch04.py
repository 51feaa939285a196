"""The checks of assignment 4."""

CHECKS = []
