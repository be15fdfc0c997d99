"""Stored numbers that no refactoring may change."""
