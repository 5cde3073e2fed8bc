"""Mechanisms as data: one class in one file, registered by the file."""
