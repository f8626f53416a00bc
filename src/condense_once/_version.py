"""The version, in a module of its own so that nothing has to import the package's root for it."""

__version__ = "0.1.0"
