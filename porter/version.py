"""The version, readable without the package's metadata."""

__version__ = "0.1.0"
