"""One module per page: from a request to a template, and no decision in between."""
