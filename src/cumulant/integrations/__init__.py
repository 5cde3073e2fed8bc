"""Adapters for other frameworks: opacus, transformers, lightning, dp_accounting.

Each is imported by name only and with its extra.
"""
