"""The rule language: the engine, globs and words, and one package for each dialect. Pure.

Rules decide who is notified of an event. Nothing here reads a clock, a file or a database.
"""
