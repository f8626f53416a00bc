"""Condensed sets: the type, cells and patches, the file format, importers and exporters."""
