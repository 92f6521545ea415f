"""The admin console in the browser: the cluster's desired state, and how old that data is."""
