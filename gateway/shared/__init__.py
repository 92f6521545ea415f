"""What the workers of the gateway share, in Valkey or Redis. It may be lost at any time.

So nothing here is the only copy of anything: a worker writes again each second what it owns, every
key ends by itself, and whoever asks is told None where nobody answers, and goes on alone.
"""
