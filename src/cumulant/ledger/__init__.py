"""A durable, shared privacy budget that refuses a run before it is spent.

Accounts live in SQLite or PostgreSQL.
"""

from cumulant.ledger.ledger import Ledger

__all__ = ["Ledger"]
