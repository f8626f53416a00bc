"""Condensed sets: the type, cells and patches, the file, and the ways in and out of it."""
