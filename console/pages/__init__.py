"""One module per page: from a request to a template, without decisions in between."""
