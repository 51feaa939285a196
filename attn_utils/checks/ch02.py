"""The checks of assignment 2."""

CHECKS = []
