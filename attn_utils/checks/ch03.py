"""The checks of assignment 3."""

CHECKS = []
