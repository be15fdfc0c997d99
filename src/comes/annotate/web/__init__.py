"""The web page of a project: its routes, who may use them, and the server."""
