"""The Arkret push protocol: wire bodies and codes its roles share."""
