"""The checks of assignment 6."""

CHECKS = []
