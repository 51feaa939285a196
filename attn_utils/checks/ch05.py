"""The checks of assignment 5."""

CHECKS = []
