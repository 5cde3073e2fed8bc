"""A durable, shared privacy budget that refuses before it is spent: accounts in SQLite or PostgreSQL."""

from cumulant.ledger.ledger import Ledger

__all__ = ["Ledger"]
