"""Gradient and feature matching: the first family of condensers."""
