"""The Matrix rule language: rules, their order, conditions, and whole rooms judged at once. Pure.

The way in: ``read_stored`` turns the stored document into a ``Ruleset``, ``editing`` changes it, ``shown``
turns it back. ``evaluate`` judges an event for one person and says why; ``Room`` judges it for everybody.
"""
