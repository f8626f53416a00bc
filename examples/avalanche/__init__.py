"""Exemplar policies for Avalanche."""
