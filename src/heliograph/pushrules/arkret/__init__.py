"""The Arkret rule language: how a device that has decrypted an Event decides whom it disturbs. Pure.

The way in: ``read_ruleset`` turns the decrypted ``ak.push_rules`` into a ``Ruleset`` or refuses it, ``Chain``
compiles it, and ``Chain.decide`` judges one ``Subject``. Only the receiver's own device does any of this.
"""
