"""What people fill in, as Django's forms: they check, and change nothing."""
