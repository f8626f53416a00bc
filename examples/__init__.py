"""Worked examples; run them from the root of the project, as `python -m examples.continual_learning.run`."""
