"""The HTTP shell: operation rows become routes, error bodies and an OpenAPI description."""
