"""Transactions and named SQL on SQLite and PostgreSQL, without a domain word."""
