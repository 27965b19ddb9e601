"""Quiet hours: when a person wants to be left alone, and which rules may disturb them even so. Pure.

``read_dnd`` reads the decrypted ``ak.dnd_schedule`` or refuses it, ``QuietHours`` judges instants by it, and
``writing`` is for whoever makes one. The zone's clock is an argument; ``ambient.tzdb`` opens the pinned data.
"""
