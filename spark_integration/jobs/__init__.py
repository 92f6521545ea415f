"""Where Spark runs: Java, sessions, the package that travels to other people's Spark.

Nothing here is imported before somebody asks for Spark: a home runs without it and without Java.
"""
