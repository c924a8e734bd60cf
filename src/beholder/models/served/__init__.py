"""Models behind an OpenAI-compatible server.

`scorer.py` opens a model and asks it, `client.py` sends requests within limits, `protocol.py` is what is sent and read,
`address.py` what the user says of the server.
"""
