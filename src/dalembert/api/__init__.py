"""The public functions by subject, made from the declarations of `dalembert.algorithms`.

A module of this package that is a subject, as `da.geometry`, holds names alone: `calls.publish` makes its
functions, and its type stub is written by `make api`.
"""
