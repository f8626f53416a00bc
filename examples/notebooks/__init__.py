"""Notebooks, and how they are executed."""
