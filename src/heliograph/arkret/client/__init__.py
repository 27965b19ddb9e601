"""What an app does between being woken and disturbing a person. Pure, and importable without the server.

``account_data`` opens a person's encrypted preferences, ``preferences`` keeps the last valid ones, and
``attention`` judges Events by them: blocklist, rules, quiet hours, surface. ``registration`` and ``wakeup``
are the two ends of the push itself. Nothing here reads a clock, draws randomness, opens a socket or a
database.
"""
