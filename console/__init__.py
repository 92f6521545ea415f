"""The admin console in the browser: the cluster as it should be, and how old that picture is."""
